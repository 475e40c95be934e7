package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Policies keeps the policy that is in force: the ConfigMap's, or, while that is bad, the last good one. A process that
// has not seen a good one uses the defaults in place of the bad values.
type Policies struct {
	client  client.Client
	key     types.NamespacedName
	events  *events
	metrics *metrics
	// changed is called when another policy has come into force.
	changed func()
	// expiryChanged is called when unused images may have to go earlier or later, or not any more.
	expiryChanged func(context.Context) error

	mu      sync.Mutex
	version string // the resourceVersion that was read last, or "absent"
	good    bool
	current policy.Policy
	dryRun  bool
	told    expiryRules // those that all images were looked at under
}

// expiryRules decide when unused images go.
type expiryRules struct {
	ttl    time.Duration
	dryRun bool
}

const absent = "absent"

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch,namespace=operator

// Current is the policy in force now. It fails only when the ConfigMap cannot be read.
func (p *Policies) Current(ctx context.Context) (policy.Policy, error) {
	current, _, err := p.load(ctx)
	return current, err
}

// InForce is the policy in force now, and whether the ConfigMap says that nothing is to be pruned yet: both of one version
// of it.
func (p *Policies) InForce(ctx context.Context) (current policy.Policy, dryRun bool, err error) {
	if _, _, err := p.load(ctx); err != nil {
		return policy.Policy{}, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current, p.dryRun, nil
}

// Reconcile follows the ConfigMap.
func (p *Policies) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	current, changed, err := p.load(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		log.FromContext(ctx).Info("policy in force", "policy", fmt.Sprintf("%+v", current))
	}
	p.changed()
	return reconcile.Result{}, p.tellExpiry(ctx)
}

// tellExpiry has the images looked at when their expiry may have changed. Those that a process finds when it begins are
// looked at anyway.
func (p *Policies) tellExpiry(ctx context.Context) error {
	p.mu.Lock()
	rules, told := p.rules(), p.told
	p.mu.Unlock()
	if rules == told {
		return nil
	}
	if err := p.expiryChanged(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = rules
	return nil
}

func (p *Policies) rules() expiryRules { return expiryRules{p.current.UnusedImageTTL, p.dryRun} }

// load reads the ConfigMap from the cache, and parses it if it is another one than before.
func (p *Policies) load(ctx context.Context) (current policy.Policy, changed bool, err error) {
	cm := &corev1.ConfigMap{}
	version := absent
	if err := p.client.Get(ctx, p.key, cm); err == nil {
		version = cm.ResourceVersion
	} else if !apierrors.IsNotFound(err) {
		return policy.Policy{}, false, fmt.Errorf("read the policy %s: %w", p.key, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if version == p.version {
		return p.current, false, nil
	}
	first := p.version == ""
	p.version, p.dryRun = version, cm.Annotations[v1alpha1.AnnotationDryRun] == "true"
	parsed, errs := policy.Parse(cm.Data)
	if len(errs) == 0 || !p.good {
		p.current = parsed
	}
	p.good = p.good || len(errs) == 0
	if first {
		p.told = p.rules()
	}
	p.metrics.policy(p.current, len(errs) == 0)
	if version != absent {
		p.complain(ctx, cm, errs)
	}
	return p.current, true, nil
}

// complain names each bad value and each key without a meaning in an event on the ConfigMap.
func (p *Policies) complain(ctx context.Context, cm *corev1.ConfigMap, errs []policy.KeyError) {
	for _, e := range errs {
		log.FromContext(ctx).Error(e, "bad value in the policy, the former one stays in force", "configMap", p.key)
		p.events.warn(cm, "InvalidPolicy", "%s; the former policy stays in force", e.Error())
	}
	for _, key := range policy.Unknown(cm.Data) {
		p.events.warn(cm, "UnknownPolicyKey", "%s has no meaning: is it misspelt?", key)
	}
}

func policyKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: v1alpha1.PolicyConfigMapName}
}
