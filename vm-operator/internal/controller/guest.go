package controller

import (
	"context"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// PasswordReader is what a namespace binds, and to whom, so that passwordSecretRef works in it.
type PasswordReader struct {
	ClusterRole string
	// ServiceAccount is the operator's, as namespace:name.
	ServiceAccount string
}

// observeGuest reads what the cloud-init Secret is made of, once that is needed. The Secret itself is never read.
func (r *VirtualMachines) observeGuest(ctx context.Context, s *plan.Snapshot) error {
	if s.VM.DeletionTimestamp != nil || s.Disk == nil && !plan.Usable(*s) {
		return nil // not needed any more, or yet
	}
	versions, err := r.observePasswords(ctx, s)
	if err != nil || s.Unmakeable != nil {
		return err
	}
	s.CloudInit = desired.Fingerprint(s.VM, versions)
	s.Applied, _ = r.applied.of(s.VM)
	return nil
}

// observePasswords reads those that the guest's accounts refer to, and the versions of their Secrets; or why they cannot be
// had. They are read from the API server itself, each time and by name, with a right that each namespace gives by itself.
func (r *VirtualMachines) observePasswords(ctx context.Context, s *plan.Snapshot) (map[v1alpha1.SecretKeySelector]string, error) {
	s.Passwords = map[v1alpha1.SecretKeySelector]string{}
	versions, seen := map[v1alpha1.SecretKeySelector]string{}, map[string]*corev1.Secret{}
	for _, ref := range desired.PasswordSecrets(s.VM) {
		if seen[ref.Name] == nil {
			seen[ref.Name] = &corev1.Secret{}
			found, err := read(ctx, r.live, types.NamespacedName{Namespace: s.VM.Namespace, Name: ref.Name}, seen[ref.Name])
			switch {
			case apierrors.IsForbidden(err):
				s.Unmakeable = r.reader.refusal(s.VM.Namespace, ref.Name)
				return nil, nil
			case err != nil:
				return nil, err
			case !found:
				s.Unmakeable = secretMissing("There is no Secret %s, which holds a password", ref.Name)
				return nil, nil
			}
		}
		secret := seen[ref.Name]
		password, ok := secret.Data[ref.Key]
		if !ok {
			s.Unmakeable = secretMissing("The Secret %s has no key %s, which holds a password", ref.Name, ref.Key)
			return nil, nil
		}
		s.Passwords[ref], versions[ref] = string(password), string(secret.UID)+"/"+secret.ResourceVersion
	}
	return versions, nil
}

func secretMissing(format string, args ...any) *plan.Refusal {
	return &plan.Refusal{Reason: v1alpha1.ReasonSecretMissing, Message: fmt.Sprintf(format, args...)}
}

// refusal says what to do in a namespace that does not let the operator read its Secrets.
func (p PasswordReader) refusal(namespace, name string) *plan.Refusal {
	return &plan.Refusal{Reason: v1alpha1.ReasonNotAuthorized, Message: fmt.Sprintf(
		"The operator may not read the Secret %s, which holds a password. To let it read Secrets of this namespace by name: "+
			"kubectl create rolebinding vm-operator-passwords -n %s --clusterrole=%s --serviceaccount=%s",
		name, namespace, p.ClusterRole, p.ServiceAccount)}
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;patch

// applySecret makes the Secret, or makes it right, without force: fields that somebody else has set to something else are a
// conflict. It cannot be told whose the Secret is then, since it is not read.
func (r *VirtualMachines) applySecret(ctx context.Context, s plan.Snapshot) error {
	want, err := desired.CloudInit(s.VM, s.Passwords)
	if err != nil {
		return &refused{v1alpha1.ReasonRefused, "The guest's accounts cannot be described: " + err.Error()}
	}
	apply, err := secretConfiguration(want)
	if err != nil {
		return err
	}
	err = r.client.Apply(ctx, apply, ownership(false)...)
	if apierrors.IsConflict(err) {
		return &refused{v1alpha1.ReasonNameTaken, fmt.Sprintf(
			"The Secret %s does not belong to this virtual machine, or somebody else has changed it: delete it, and it is made again", want.Name)}
	}
	if err == nil {
		r.applied.note(s.VM, plan.SecretApplied{Fingerprint: s.CloudInit, At: r.now()})
	}
	return wrap("apply the Secret", err)
}
