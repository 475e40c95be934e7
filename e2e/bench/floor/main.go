// Command floor brings images from creation to Succeeded with the five writes that cannot be saved (status Queued with
// its ticket, status Syncing, the DataVolume, the VolumeSnapshot, status Succeeded) and nothing else: no slots, no
// events, no leader, no retries, no recovery. It is what the bench measures the operator against.
//
// It is honest work otherwise: first in, first out; never more than the limit; one watch for each kind; the same kind of
// status write as the operator's, with all four conditions that the API promises.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	"github.com/pelotech/open-terrain/e2e/bench/bare"
	cdiv1 "kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	limit := flag.Int("limit", 4, "images that may be Syncing at once")
	workers := flag.Int("workers", 8, "writers of statuses and snapshots whose order does not matter")
	merge := flag.Bool("merge-patch", false, "write statuses by merge patch instead of server-side apply")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, err := bare.NewClient(*kubeconfig, otv1alpha1.AddToScheme, cdiv1.AddToScheme, snapshotv1.AddToScheme)
	if err == nil {
		err = newFloor(c, *limit, *merge).run(ctx, *workers)
	}
	ended := ctx.Err() != nil
	stop()
	if err != nil && !ended {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}
