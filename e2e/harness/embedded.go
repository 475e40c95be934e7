package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	controlPlaneTimeout = time.Minute
	// exitWithParent makes our control plane binary leave when the process with this id is no longer its parent,
	// so that a test that is killed leaves nothing running.
	exitWithParent = "OPEN_TERRAIN_EXIT_WITH_PARENT"

	auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`
)

func (c *Cluster) startEmbedded(ctx context.Context, options Options) error {
	assets, err := Assets(ctx)
	if err != nil {
		return err
	}
	c.assets = assets
	crds := options.CRDs
	if crds == nil {
		if crds, err = options.defaultCRDs(ctx); err != nil {
			return err
		}
	}
	if err := c.startAPIServer(options); err != nil {
		return err
	}
	// The garbage collector looks for new kinds every 30 s only: they have to be there when it starts.
	if err := c.InstallCRDs(crds...); err != nil {
		return err
	}
	if options.Scheduler || options.Nodes > 0 {
		if err := c.startComponent(ctx, "kube-scheduler", nil); err != nil {
			return err
		}
	}
	if err := c.startControllers(ctx, options); err != nil || options.Nodes == 0 {
		return err
	}
	return c.startNodes(ctx, options.Nodes)
}

func (c *Cluster) startAPIServer(options Options) error {
	// The children inherit it; envtest gives no other way to pass an environment.
	if err := os.Setenv(exitWithParent, strconv.Itoa(os.Getpid())); err != nil {
		return err
	}
	dataDir := options.DataDir
	if dataDir == "" {
		dataDir = filepath.Join(c.Dir, "etcd")
	}
	certDir := filepath.Join(c.Dir, "apiserver")
	for _, dir := range []string{dataDir, certDir, filepath.Join(c.Dir, "logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	env := &envtest.Environment{BinaryAssetsDirectory: c.assets, ControlPlaneStartTimeout: controlPlaneTimeout}
	if err := c.configure(env, options); err != nil {
		return err
	}
	env.ControlPlane.Etcd.DataDir, env.ControlPlane.APIServer.CertDir = dataDir, certDir
	c.env = env
	config, err := env.Start()
	if err != nil {
		return fmt.Errorf("%w; see %s", err, filepath.Join(c.Dir, "logs"))
	}
	config.QPS, config.Burst = -1, 0
	c.Config, c.EtcdURL = config, env.ControlPlane.Etcd.URL.String()
	c.Kubeconfig = filepath.Join(c.Dir, "kubeconfig")
	return os.WriteFile(c.Kubeconfig, env.KubeConfig, 0o600)
}

// configure sets flags and log files of etcd and kube-apiserver.
func (c *Cluster) configure(env *envtest.Environment, options Options) error {
	etcdLog, err := c.logFile("etcd")
	if err != nil {
		return err
	}
	apiLog, err := c.logFile("kube-apiserver")
	if err != nil {
		return err
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Out: etcdLog, Err: etcdLog}
	api := env.ControlPlane.GetAPIServer()
	api.Out, api.Err = apiLog, apiLog
	// Otherwise open watches keep it from ending for a minute.
	api.Configure().Set("shutdown-watch-termination-grace-period", "1s")
	for name, value := range options.APIServerArgs {
		api.Configure().Set(name, value)
	}
	if !options.Audit {
		return nil
	}
	policy := filepath.Join(c.Dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	c.AuditLog = filepath.Join(c.Dir, "audit.log")
	api.Configure().Set("audit-policy-file", policy).Set("audit-log-path", c.AuditLog)
	return nil
}

func (c *Cluster) logFile(program string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.Dir, "logs", program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		c.files = append(c.files, f)
	}
	return f, err
}

func (c *Cluster) startControllers(ctx context.Context, options Options) error {
	controllers := options.Controllers
	if controllers == nil {
		controllers = DefaultControllers()
	}
	if options.Nodes > 0 && !slices.Contains(controllers, "*") {
		controllers = append(slices.Clone(controllers), podControllers()...)
	}
	if len(controllers) == 0 {
		return nil
	}
	api := c.env.ControlPlane.APIServer
	ca := filepath.Join(c.Dir, "ca.crt")
	if err := os.WriteFile(ca, api.CA, 0o600); err != nil {
		return err
	}
	args := map[string]string{
		"controllers": strings.Join(controllers, ","),
		// Without a client-side limit: a slow garbage collector would look like a slow operator.
		"kube-api-qps":                     "5000",
		"kube-api-burst":                   "10000",
		"service-account-private-key-file": filepath.Join(api.CertDir, "sa-signer.key"),
		"root-ca-file":                     ca,
	}
	maps.Copy(args, options.ControllerManagerArgs)
	if err := c.startComponent(ctx, "kube-controller-manager", args); err != nil {
		return err
	}
	if !slices.Contains(controllers, "garbage-collector-controller") && !slices.Contains(controllers, "*") {
		return nil
	}
	return c.waitForGarbageCollector(ctx)
}

// startComponent runs one of the programs that talk to the API server, without leader election and without a port.
func (c *Cluster) startComponent(ctx context.Context, program string, args map[string]string) error {
	log, err := c.logFile(program)
	if err != nil {
		return err
	}
	flags := []string{"--kubeconfig=" + c.Kubeconfig, "--leader-elect=false", "--secure-port=0"}
	for name, value := range args {
		flags = append(flags, "--"+name+"="+value)
	}
	process, err := StartProcess(ctx, Command{Path: filepath.Join(c.assets, program), Args: flags, Log: log})
	if err != nil {
		return err
	}
	c.processes = append(c.processes, process)
	return nil
}

// waitForGarbageCollector returns when an object whose owner does not exist has been collected.
func (c *Cluster) waitForGarbageCollector(ctx context.Context) error {
	cl, err := c.Client("harness")
	if err != nil {
		return err
	}
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: "garbage-collector-probe",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "nobody"}},
	}}
	if err := cl.Create(ctx, orphan); err != nil {
		return err
	}
	manager := c.processes[len(c.processes)-1]
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, controlPlaneTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-manager.Done():
			return false, errors.New("kube-controller-manager has ended")
		default:
		}
		err := cl.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait for the garbage collector: %w; see %s", err, filepath.Join(c.Dir, "logs"))
	}
	return nil
}

// StopAPIServer ends kube-apiserver and leaves etcd, the controllers and the operators running.
func (c *Cluster) StopAPIServer() error {
	if c.env == nil {
		return errors.New("the API server of a cluster that exists cannot be stopped")
	}
	return c.env.ControlPlane.APIServer.Stop()
}

// StartAPIServer starts kube-apiserver again after StopAPIServer: same address, certificates and etcd.
func (c *Cluster) StartAPIServer() error {
	if c.env == nil {
		return errors.New("the API server of a cluster that exists cannot be started")
	}
	return c.env.ControlPlane.APIServer.Start()
}

// RestartAPIServer stops kube-apiserver and returns when it is healthy again.
func (c *Cluster) RestartAPIServer() error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	return c.StartAPIServer()
}
