package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/vm-operator/internal/desired"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan"
	"github.com/pelotech/open-terrain/vm-operator/internal/plan/drift"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretAsMade is a Secret that was found, or written, as it shall be, and what it was made from. To make it again takes some
// milliseconds for each password, which is too much for every look.
type secretAsMade struct {
	uid             types.UID
	resourceVersion string
	generation      int64
	passwords       string // a hash
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// observeGuest reads the cloud-init Secret, and makes what it shall be where that is needed.
func (r *VirtualMachines) observeGuest(ctx context.Context, from client.Reader, s *plan.Snapshot) error {
	secret := &corev1.Secret{}
	found, err := read(ctx, from, childKey(s.VM), secret)
	if err != nil {
		return err
	}
	if found {
		s.Secret = secret
	}
	if s.VM.DeletionTimestamp != nil || s.Disk == nil && !plan.Usable(*s) {
		return nil // not needed any more, or yet
	}
	return r.makeCloudInit(ctx, s)
}

// makeCloudInit makes the Secret as it shall be, unless the one that was read is known to be just that. Passwords of other
// Secrets are read from the API server itself, each time and by name: a cache would have to hold every Secret of the cluster.
func (r *VirtualMachines) makeCloudInit(ctx context.Context, s *plan.Snapshot) error {
	passwords, missing, err := r.passwords(ctx, s.VM)
	if err != nil || missing != nil {
		s.Unmakeable = missing
		return err
	}
	made := r.secretAsMade(s, passwords)
	if known, ok := r.secrets.of(s.VM); ok && known == made && s.Secret != nil {
		return nil
	}
	want, err := desired.CloudInit(s.VM, passwords)
	if err != nil {
		s.Unmakeable = &plan.Refusal{Reason: v1alpha1.ReasonRefused, Message: "The guest's accounts cannot be described: " + err.Error()}
		return nil //nolint:nilerr // it is told by status; trying again does not help
	}
	s.CloudInit = want
	if s.Secret == nil || len(drift.OfSecret(want, s.Secret)) > 0 {
		made.uid, made.resourceVersion = "", "" // until it is applied
	}
	r.secrets.note(s.VM, made)
	return nil
}

// passwords are those that the guest's accounts refer to, or why they cannot be had.
func (r *VirtualMachines) passwords(ctx context.Context, vm *v1alpha1.VirtualMachine) (map[v1alpha1.SecretKeySelector]string, *plan.Refusal, error) {
	all := map[v1alpha1.SecretKeySelector]string{}
	seen := map[string]*corev1.Secret{}
	for _, ref := range desired.PasswordSecrets(vm) {
		if seen[ref.Name] == nil {
			seen[ref.Name] = &corev1.Secret{}
			found, err := read(ctx, r.live, types.NamespacedName{Namespace: vm.Namespace, Name: ref.Name}, seen[ref.Name])
			if err != nil {
				return nil, nil, err
			}
			if !found {
				return nil, secretMissing("There is no Secret %s, which holds a password", ref.Name), nil
			}
		}
		password, ok := seen[ref.Name].Data[ref.Key]
		if !ok {
			return nil, secretMissing("The Secret %s has no key %s, which holds a password", ref.Name, ref.Key), nil
		}
		all[ref] = string(password)
	}
	return all, nil, nil
}

func secretMissing(format string, args ...any) *plan.Refusal {
	return &plan.Refusal{Reason: v1alpha1.ReasonSecretMissing, Message: fmt.Sprintf(format, args...)}
}

// secretAsMade is what is remembered when the Secret that was read is as it shall be.
func (r *VirtualMachines) secretAsMade(s *plan.Snapshot, passwords map[v1alpha1.SecretKeySelector]string) secretAsMade {
	made := secretAsMade{generation: s.VM.Generation, passwords: fingerprint(s.VM, passwords)}
	if s.Secret != nil {
		made.uid, made.resourceVersion = s.Secret.UID, s.Secret.ResourceVersion
	}
	return made
}

// fingerprint of the passwords. It stays in memory, and tells only that they are the same.
func fingerprint(vm *v1alpha1.VirtualMachine, passwords map[v1alpha1.SecretKeySelector]string) string {
	var ordered []string
	for _, ref := range desired.PasswordSecrets(vm) {
		ordered = append(ordered, ref.Name, ref.Key, passwords[ref])
	}
	raw, _ := json.Marshal(ordered) // strings only: cannot fail
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;patch

// applySecret makes the Secret, or makes it right.
func (r *VirtualMachines) applySecret(ctx context.Context, s plan.Snapshot) error {
	apply, err := secretConfiguration(s.CloudInit)
	if err != nil {
		return err
	}
	if s.Secret != nil {
		apply.WithUID(s.Secret.UID)
	}
	err = r.client.Apply(ctx, apply, ownership(s.Secret != nil)...)
	if isTaken(err, s.Secret != nil) {
		existing := &corev1.Secret{}
		uid, owned := r.ownerOf(ctx, s.VM, client.ObjectKeyFromObject(s.CloudInit), existing)
		if owned != nil {
			return owned
		}
		err = r.client.Apply(ctx, apply.WithUID(uid), ownership(true)...)
	}
	if made, ok := r.secrets.of(s.VM); ok && err == nil {
		made.uid, made.resourceVersion = ptr.Deref(apply.UID, ""), ptr.Deref(apply.ResourceVersion, "")
		r.secrets.note(s.VM, made)
	}
	return wrap("apply the Secret", err)
}
