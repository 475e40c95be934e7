// Command vmfloor brings VirtualMachines from creation to Ready with the writes that cannot be saved (a share in the claim on
// the image, the Secret, the DataVolume, KubeVirt's VirtualMachine, one status) and nothing else: no status on the way, no
// events, no leader, no retries, no recovery, no look at what is there already. It is what the bench measures the vm-operator
// against.
//
// It is honest work otherwise: no clone before the image counts the machine, no machine before its disk is cloned, Ready when
// KubeVirt says so; it learns all that by watches, one for each kind; the same children, and a status of the same kind with all
// five conditions. It is told beforehand how many machines an image will get, which the operator cannot know: so it claims
// an image once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	corev1 "k8s.io/api/core/v1"
	virtv1 "kubevirt.io/api/core/v1"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	share := flag.Int("share", 1, "how many machines each image will get")
	workers := flag.Int("workers", 8, "writers for each of the three steps of a machine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, err := bare.NewClient(*kubeconfig, corev1.AddToScheme, otv1alpha1.AddToScheme, cdiv1.AddToScheme, virtv1.AddToScheme)
	if err == nil {
		err = newFloor(c, *share).run(ctx, *workers)
	}
	ended := ctx.Err() != nil
	stop()
	if err != nil && !ended {
		fmt.Fprintln(os.Stderr, "vmfloor:", err)
		os.Exit(1)
	}
}
