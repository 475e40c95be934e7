// Command informers holds the disk-sync-operator's informers, and does nothing with them: what the operator's memory is
// measured against.
//
// The options are a faithful copy of disk-sync-operator/internal/controller/cache.go and of the index in watches.go
// (same kinds, selectors, transforms, namespaces), because another module cannot import an internal package. A change
// there belongs here, too.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	_ "net/http/pprof" // so that the bench can ask for a garbage collection, as it asks the operator
	"os"
	"os/signal"
	"runtime"
	"syscall"

	otv1alpha1 "github.com/pelotech/open-terrain/apis/ot/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	namespace := flag.String("namespace", "sync-operator", "the operator's")
	address := flag.String("address", "127.0.0.1:0", "of /synced, /metrics and /debug/pprof")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *namespace, *address)
	ended := ctx.Err() != nil
	stop()
	if err != nil && !ended {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.UserAgent = -1, "informers"
	options, err := cacheOptions(namespace)
	if err != nil {
		return err
	}
	informers, err := cache.New(config, options)
	if err != nil {
		return err
	}
	if err := informers.IndexField(ctx, &corev1.PersistentVolumeClaim{}, "metadata.uid", func(o client.Object) []string {
		return []string{string(o.GetUID())}
	}); err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- informers.Start(ctx) }()
	go func() { failed <- serve(address) }()
	for object := range options.ByObject {
		if _, err := informers.GetInformer(ctx, object); err != nil {
			return err
		}
	}
	if _, err := informers.GetInformer(ctx, &otv1alpha1.VMDiskImage{}); err != nil {
		return err
	}
	informers.WaitForCacheSync(ctx)
	http.HandleFunc("/synced", func(http.ResponseWriter, *http.Request) {})
	return <-failed
}

func serve(address string) error {
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		fmt.Fprintf(w, "go_memstats_heap_inuse_bytes %d\n", stats.HeapInuse)
	})
	return http.ListenAndServe(address, nil)
}
