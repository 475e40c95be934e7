package harness

import "os"

// Options of Start. The zero value is a control plane with all CRDs, the default controllers, and nothing else.
type Options struct {
	// Kubeconfig of a cluster that exists. When it is set, nothing is started, and the fields below are ignored
	// except CRDs and Dir. See FromEnv.
	Kubeconfig string

	// CRDs are files and folders of CustomResourceDefinitions to install before the controllers start. Nil means
	// AllCRDs on a control plane of our own and OwnCRDs on a cluster that exists; empty means none.
	CRDs []string

	// KubeVirt adds the CustomResourceDefinitions of KubeVirt and of networks to what a nil CRDs means. They are large.
	KubeVirt bool

	// Controllers of kube-controller-manager, as its flag --controllers takes them. Nil means
	// DefaultControllers; "*" stands for all that are on by default; empty means that none runs.
	Controllers []string

	// Scheduler starts kube-scheduler.
	Scheduler bool

	// Nodes is how many nodes there are for pods that nobody else plays; KWOK is their kubelet. They bring the scheduler and the
	// controllers of Deployments and of the endpoints of Services. How a pod fares can be read off it: an image with
	// no-such-image in its name cannot be pulled, and a container whose command is /bin/false ends each time it is started.
	Nodes int

	// Audit writes one line of JSON per request (level Metadata) to Cluster.AuditLog.
	Audit bool

	// Dir keeps certificates, kubeconfig, data and logs; it is created if need be and left behind by Stop. Empty
	// means a temporary folder that Stop removes.
	Dir string

	// DataDir of etcd; empty means a folder in Dir. A folder on tmpfs takes the disk out of measurements. It must
	// not exist or be empty, and is left behind by Stop.
	DataDir string

	// APIServerArgs and ControllerManagerArgs are further flags by name, without the dashes.
	APIServerArgs         map[string]string
	ControllerManagerArgs map[string]string
}

// FromEnv is the options for the cluster that KUBECONFIG names when OT_E2E=existing, as make e2e sets them, or else
// those given: a KUBECONFIG that happens to be set must not turn somebody's cluster into a test's.
func FromEnv(otherwise Options) Options {
	if os.Getenv("OT_E2E") == "existing" {
		otherwise.Kubeconfig = os.Getenv("KUBECONFIG")
	}
	return otherwise
}

// DefaultControllers are those that our objects need to live and die as on a real cluster: owners, namespaces,
// quotas, and the finalizers that admission puts on claims and volumes.
func DefaultControllers() []string {
	return []string{
		"garbage-collector-controller",
		"namespace-controller",
		"serviceaccount-controller",
		"resourcequota-controller",
		"persistentvolumeclaim-protection-controller",
		"persistentvolume-protection-controller",
	}
}
