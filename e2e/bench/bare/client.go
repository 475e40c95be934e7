package bare

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Agent is the user agent that a floor's requests are counted by, and the field manager of its writes.
const Agent = "floor"

// NewClient knows the kinds that are added.
func NewClient(kubeconfig string, kinds ...func(*runtime.Scheme) error) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.UserAgent = -1, Agent
	scheme := runtime.NewScheme()
	for _, add := range kinds {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Follow passes on every object that appears or changes. The API server drops watchers that are slow for a moment: the
// watch goes on where it ended.
func Follow(ctx context.Context, c client.WithWatch, list client.ObjectList, seen func(client.Object)) error {
	version := ""
	for ctx.Err() == nil {
		options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}}
		changes, err := c.Watch(ctx, list, options)
		if err != nil {
			return fmt.Errorf("watch %T: %w", list, err)
		}
		for change := range changes.ResultChan() {
			object, is := change.Object.(client.Object)
			if change.Type == watch.Error || !is {
				return fmt.Errorf("watch %T: %w", list, apierrors.FromObject(change.Object))
			}
			version = object.GetResourceVersion()
			if change.Type == watch.Added || change.Type == watch.Modified {
				seen(object)
			}
		}
	}
	return ctx.Err()
}
