package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1beta1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Cluster is an API server to test against, with administrator rights.
type Cluster struct {
	// Config has no client-side rate limit. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is a file with the same rights.
	Kubeconfig string
	// Dir has logs/<program>.log, and whatever else a test wants to keep there.
	Dir string
	// EtcdURL is empty on a cluster that exists.
	EtcdURL string
	// AuditLog is the file of the audit log, or empty when Options.Audit was not set.
	AuditLog string

	assets    string
	env       *envtest.Environment
	processes []*Process
	files     []io.Closer
	temporary bool
}

// NewScheme knows the kinds of Kubernetes, ours, CDI's, KubeVirt's and the snapshotter's.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(otv1alpha1.AddToScheme(scheme))
	utilruntime.Must(cdiv1beta1.AddToScheme(scheme))
	utilruntime.Must(snapshotv1.AddToScheme(scheme))
	utilruntime.Must(virtv1.AddToScheme(scheme))
	return scheme
}

// Start brings up a control plane, or connects to the one that options name. Stop it also when ctx is done: the
// context limits the start and the processes of this package, not etcd and the API server.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{Dir: options.Dir}
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "open-terrain-")
		if err != nil {
			return nil, err
		}
		c.Dir, c.temporary = dir, true
	}
	start := c.startEmbedded
	if options.Kubeconfig != "" {
		start = c.connect
	}
	if err := start(ctx, options); err != nil {
		return nil, errors.Join(fmt.Errorf("start the cluster: %w", err), c.Stop())
	}
	return c, nil
}

// connect is the backend for a cluster that exists.
func (c *Cluster) connect(_ context.Context, options Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", options.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	c.Config, c.Kubeconfig = config, options.Kubeconfig
	crds := options.CRDs
	if crds == nil {
		own, err := OwnCRDs()
		if err != nil {
			return err
		}
		crds = []string{own}
	}
	return c.InstallCRDs(crds...)
}

// InstallCRDs creates or updates the CustomResourceDefinitions of files and folders and returns when the API server
// serves them. The garbage collector learns about them within 30 s.
func (c *Cluster) InstallCRDs(paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	return err
}

// Client returns a client that names itself userAgent, which is what the audit log counts by.
func (c *Cluster) Client(userAgent string) (client.WithWatch, error) {
	config := rest.CopyConfig(c.Config)
	config.UserAgent = userAgent
	return client.NewWithWatch(config, client.Options{Scheme: NewScheme()})
}

// Kubectl runs kubectl and returns its standard output; the error has the standard error.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	path, err := c.kubectlPath(ctx)
	if err != nil {
		return "", err
	}
	args = append([]string{"--kubeconfig", c.Kubeconfig, "--cache-dir", filepath.Join(c.Dir, "kubectl")}, args...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args[4:], " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

func (c *Cluster) kubectlPath(ctx context.Context) (string, error) {
	if c.assets == "" {
		if path, err := exec.LookPath("kubectl"); err == nil {
			return path, nil
		}
		assets, err := Assets(ctx)
		if err != nil {
			return "", err
		}
		c.assets = assets
	}
	return filepath.Join(c.assets, "kubectl"), nil
}

// Stop ends what Start started. On a cluster that exists it only removes its own temporary files.
func (c *Cluster) Stop() error {
	var errs []error
	for _, process := range slices.Backward(c.processes) {
		process.Kill()
	}
	if c.env != nil {
		errs = append(errs, c.env.Stop())
	}
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	if c.temporary {
		errs = append(errs, os.RemoveAll(c.Dir))
	}
	return errors.Join(errs...)
}
