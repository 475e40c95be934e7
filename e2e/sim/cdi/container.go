package cdi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pelotech/open-terrain/e2e/sim/cdi/importer"
)

// request collects what the container gets from its environment and volumes. It waits, as the kubelet does, for a
// ConfigMap and a Secret that do not exist yet.
func (p *play) request(ctx context.Context, scratch bool) (importer.Request, error) {
	size := p.prime.Spec.Resources.Requests[corev1.ResourceStorage]
	r := importer.Request{Source: p.source.kind, URL: p.source.url, Checksum: p.source.checksum, Size: size.Value(), Scratch: scratch, IdleTimeout: p.options.IdleTimeout}
	if p.source.certConfigMap != "" {
		var m corev1.ConfigMap
		if err := p.await(ctx, &m, &corev1.ConfigMapList{}, p.source.certConfigMap, p.missingConfigMap); err != nil {
			return r, err
		}
		for _, pem := range m.Data {
			r.CAs = append(r.CAs, []byte(pem))
		}
	}
	if p.source.secret != "" {
		var secret corev1.Secret
		if err := p.await(ctx, &secret, &corev1.SecretList{}, p.source.secret, p.missingSecret); err != nil {
			return r, err
		}
		r.AccessKey, r.SecretKey = string(secret.Data[keyAccess]), string(secret.Data[keySecret])
	}
	return r, nil
}

// await returns when an object exists and missing has no objection to it; missing is told nil while there is none.
func (p *play) await(ctx context.Context, object client.Object, list client.ObjectList, name string, missing func(context.Context, client.Object) (bool, error)) error {
	key := client.ObjectKey{Namespace: p.pod.Namespace, Name: name}
	for {
		err := p.client.Get(ctx, key, object)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		found := object
		if apierrors.IsNotFound(err) {
			found = nil
		}
		if wait, err := missing(ctx, found); err != nil || !wait {
			return err
		}
		version := ""
		if found != nil {
			version = found.GetResourceVersion()
		}
		if err := p.nextVersion(ctx, list, key, version); err != nil {
			return err
		}
	}
}

// nextVersion returns when an object exists in another version than the one given.
func (p *play) nextVersion(ctx context.Context, list client.ObjectList, key client.ObjectKey, version string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := p.client.Watch(ctx, list, client.InNamespace(key.Namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", key.Name)})
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

func (p *play) missingSecret(ctx context.Context, found client.Object) (bool, error) {
	message := fmt.Sprintf("secret %q not found", p.source.secret)
	if secret, ok := found.(*corev1.Secret); ok {
		message = ""
		for _, key := range []string{keyAccess, keySecret} {
			if _, there := secret.Data[key]; !there {
				message = fmt.Sprintf("couldn't find key %s in Secret %s/%s", key, secret.Namespace, secret.Name)
				break
			}
		}
	}
	if message == "" {
		return false, nil
	}
	return true, p.waiting(ctx, "CreateContainerConfigError", message)
}

func (p *play) missingConfigMap(ctx context.Context, found client.Object) (bool, error) {
	if found != nil {
		return false, nil
	}
	now := metav1.Now()
	return true, p.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: p.pod.Namespace, GenerateName: p.pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.pod.Namespace, Name: p.pod.Name, UID: p.pod.UID},
		Type:           corev1.EventTypeWarning, Reason: "FailedMount", Source: corev1.EventSource{Component: "kubelet", Host: NodeName},
		Message:        fmt.Sprintf("MountVolume.SetUp failed for volume %q : configmap %q not found", certVolume, p.source.certConfigMap),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
}

// runImporter runs the container once and reports its progress on the way.
func (p *play) runImporter(ctx context.Context, r importer.Request) importer.Result {
	if message := p.behaviour().Fail; message != "" {
		return importer.Result{ExitCode: 1, Message: message}
	}
	dir, err := os.MkdirTemp(p.options.Dir, "cdi-")
	if err != nil {
		return importer.Result{ExitCode: 1, Message: err.Error()}
	}
	defer os.RemoveAll(dir)
	var percent atomic.Uint64
	r.Dir, r.OnProgress = dir, func(f float64) { percent.Store(math.Float64bits(f)) }
	done := make(chan importer.Result, 1)
	go func() { done <- importer.Run(ctx, r) }()
	ticker := time.NewTicker(p.options.ProgressInterval)
	defer ticker.Stop()
	for {
		select {
		case result := <-done:
			return result
		case <-ticker.C:
			p.reportProgress(ctx, math.Float64frombits(percent.Load()))
		}
	}
}

// reportProgress shows a percentage, but not 100, which does not mean yet that the import is done.
func (p *play) reportProgress(ctx context.Context, percent float64) {
	if percent <= 0 || percent >= 100 {
		return
	}
	p.set(annPopulatorProgress, fmt.Sprintf("%.2f%%", percent))
	_ = p.report(ctx) // the next report tries again
}

// unwrap returns the message of a termination message in JSON.
func unwrap(document string) string {
	var m struct{ Message string }
	if json.Unmarshal([]byte(document), &m) != nil {
		return document
	}
	return m.Message
}
