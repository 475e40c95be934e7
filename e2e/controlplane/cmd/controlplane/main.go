// Command controlplane is the Kubernetes control plane in one binary: the name that it is
// called by (a symbolic link) says which program it is. It exists so that tests and the demo
// need nothing but Go; see the package github.com/pelotech/open-terrain/e2e/harness for its use.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// parentVariable holds the id of the process that the control plane serves.
const parentVariable = "OPEN_TERRAIN_EXIT_WITH_PARENT"

func main() {
	if parent, err := strconv.Atoi(os.Getenv(parentVariable)); err == nil {
		go exitWithParent(parent)
	}
	var c *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kube-apiserver":
		c = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		c = kcm.NewControllerManagerCommand()
	case "kube-scheduler":
		c = scheduler.NewSchedulerCommand()
	case "kubectl":
		c = kubectl.NewDefaultKubectlCommand()
	case "kwok":
		os.Exit(runKWOK())
	default:
		fmt.Fprintf(os.Stderr, "%s: call me by a symbolic link named etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl or kwok\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(c))
}

// exitWithParent ends this process when the one that started it has gone: a test that is killed cannot clean up.
func exitWithParent(pid int) {
	for os.Getppid() == pid {
		time.Sleep(time.Second)
	}
	os.Exit(1)
}
