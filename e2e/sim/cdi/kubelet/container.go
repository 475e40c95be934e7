package kubelet

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
	"github.com/pelotech/open-terrain/e2e/sim/cdi/objects"
)

// amazon is the beginning of the URL of an object in Amazon's S3.
var amazon = regexp.MustCompile(`^https://s3\.([a-z0-9-]+\.)?amazonaws\.com/`)

// located is where the image comes from: nothing simulated goes to Amazon.
func (k *Kubelet) located(url string) string {
	if k.options.Amazon == "" {
		return url
	}
	return amazon.ReplaceAllLiteralString(url, k.options.Amazon)
}

// request collects what the container gets from its environment and volumes. It waits, as a kubelet does, for a
// ConfigMap and a Secret that do not exist yet.
func (k *Kubelet) request(ctx context.Context, r *Run) (importer.Request, error) {
	s := r.Source
	request := importer.Request{Source: s.Kind, URL: k.located(s.URL), Checksum: s.Checksum, Size: r.Size, Scratch: r.Scratch != nil, IdleTimeout: k.options.IdleTimeout}
	if s.CertConfigMap != "" {
		var certs corev1.ConfigMap
		err := k.await(ctx, &certs, &corev1.ConfigMapList{}, inNamespace(r, s.CertConfigMap), func(ok bool) (bool, error) {
			return ok, k.tellMissingConfigMap(ctx, r, ok)
		})
		if err != nil {
			return request, err
		}
		for _, pem := range certs.Data {
			request.CAs = append(request.CAs, []byte(pem))
		}
	}
	if s.Secret != "" {
		var secret corev1.Secret
		err := k.await(ctx, &secret, &corev1.SecretList{}, inNamespace(r, s.Secret), func(ok bool) (bool, error) {
			objection := objectionTo(&secret, s.Secret, ok)
			if objection == "" {
				return true, nil
			}
			return false, k.waiting(ctx, r, "CreateContainerConfigError", objection)
		})
		if err != nil {
			return request, err
		}
		request.AccessKey, request.SecretKey = string(secret.Data[objects.KeyAccess]), string(secret.Data[objects.KeySecret])
	}
	return request, nil
}

func inNamespace(r *Run, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: r.Pod.Namespace, Name: name}
}

// await returns when good says so; it is told whether the object exists, and asked again for each version of it.
func (k *Kubelet) await(ctx context.Context, object client.Object, list client.ObjectList, key client.ObjectKey, good func(exists bool) (bool, error)) error {
	for {
		err := k.client.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		exists, version := !apierrors.IsNotFound(err), ""
		if exists {
			version = object.GetResourceVersion()
		}
		if ok, err := good(exists); err != nil || ok {
			return err
		}
		if err := k.nextVersion(ctx, list, key, version); err != nil {
			return err
		}
	}
}

// nextVersion returns when an object exists in another version than the one given.
func (k *Kubelet) nextVersion(ctx context.Context, list client.ObjectList, key client.ObjectKey, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := k.client.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if o, ok := event.Object.(client.Object); ok && o.GetResourceVersion() != version {
			return nil
		}
	}
	return ctx.Err() // the watch has ended: look again
}

// objectionTo is what a kubelet says about a Secret that it cannot use.
func objectionTo(secret *corev1.Secret, name string, exists bool) string {
	if !exists {
		return fmt.Sprintf("secret %q not found", name)
	}
	for _, key := range []string{objects.KeyAccess, objects.KeySecret} {
		if _, ok := secret.Data[key]; !ok {
			return fmt.Sprintf("couldn't find key %s in Secret %s/%s", key, secret.Namespace, secret.Name)
		}
	}
	return ""
}

func (k *Kubelet) tellMissingConfigMap(ctx context.Context, r *Run, exists bool) error {
	if exists {
		return nil
	}
	now := metav1.Now()
	return k.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: r.Pod.Namespace, GenerateName: r.Pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: r.Pod.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedMount", Source: corev1.EventSource{Component: "kubelet", Host: objects.NodeName},
		Message:        fmt.Sprintf("MountVolume.SetUp failed for volume %q : configmap %q not found", objects.CertVolume, r.Source.CertConfigMap),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}

// runImporter runs the container once and tells its progress on the way.
func (k *Kubelet) runImporter(ctx context.Context, r *Run, request importer.Request) importer.Result {
	if message := r.Fail(); message != "" {
		return importer.Result{ExitCode: 1, Message: message}
	}
	dir, err := os.MkdirTemp(k.options.Dir, "cdi-")
	if err != nil {
		return importer.Result{ExitCode: 1, Message: err.Error()}
	}
	defer os.RemoveAll(dir)
	var percent atomic.Uint64
	request.Dir, request.OnProgress = dir, func(f float64) { percent.Store(math.Float64bits(f)) }
	done := make(chan importer.Result, 1)
	go func() { done <- importer.Run(ctx, request) }()
	ticker := time.NewTicker(k.options.ProgressInterval)
	defer ticker.Stop()
	for {
		select {
		case result := <-done:
			return result
		case <-ticker.C:
			r.Progress(ctx, math.Float64frombits(percent.Load()))
		}
	}
}
