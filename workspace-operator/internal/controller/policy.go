package controller

import (
	"context"
	"sync"

	"github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/apis/policy"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Policies keeps the policy that is in force: the ConfigMap's, or, while its workspaceConcurrency is bad, the last good one. A
// process that has not seen a good one uses the default in place of a bad value. The other keys are the disk-sync-operator's.
type Policies struct {
	client  client.Client
	key     types.NamespacedName
	events  *events
	metrics *metrics
	// changed is called when another policy may be in force.
	changed func()

	mu      sync.Mutex
	version string // the resourceVersion that was read last, or "absent"
	good    bool
	current policy.Policy
}

const absent = "absent"

// Current is the policy in force now. It fails only when the ConfigMap cannot be read. The right to read it is in a Role of
// its namespace, which is another operator's: see the chart.
func (p *Policies) Current(ctx context.Context) (policy.Policy, error) {
	current, _, err := p.load(ctx)
	return current, err
}

// Reconcile follows the ConfigMap.
func (p *Policies) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	current, changed, err := p.load(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if changed {
		log.FromContext(ctx).Info("policy in force", "workspaceConcurrency", current.WorkspaceConcurrency)
	}
	p.changed()
	return reconcile.Result{}, nil
}

// load reads the ConfigMap from the cache, and parses it if it is another one than before.
func (p *Policies) load(ctx context.Context) (current policy.Policy, changed bool, err error) {
	cm := &corev1.ConfigMap{}
	version := absent
	if err := p.client.Get(ctx, p.key, cm); err == nil {
		version = cm.ResourceVersion
	} else if !apierrors.IsNotFound(err) {
		return policy.Policy{}, false, wrap("read the policy "+p.key.String(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if version == p.version {
		return p.current, false, nil
	}
	p.version = version
	parsed, bad := concurrencyOf(cm)
	if bad == nil || !p.good {
		p.current = parsed
	}
	p.good = p.good || bad == nil
	p.metrics.policy(bad == nil)
	if bad != nil {
		log.FromContext(ctx).Error(*bad, "bad value in the policy, the former one stays in force", "configMap", p.key)
		p.events.badPolicy(cm, *bad)
	}
	return p.current, true, nil
}

// concurrencyOf reads the one key that is this operator's.
func concurrencyOf(cm *corev1.ConfigMap) (policy.Policy, *policy.KeyError) {
	own := map[string]string{}
	if value, given := cm.Data[policy.KeyWorkspaceConcurrency]; given {
		own[policy.KeyWorkspaceConcurrency] = value
	}
	parsed, errs := policy.Parse(own)
	if len(errs) > 0 {
		return parsed, &errs[0]
	}
	return parsed, nil
}

func policyKey(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: v1alpha1.PolicyConfigMapName}
}
