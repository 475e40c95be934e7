// Command informers holds an operator's informers, and does nothing with them: what the operator's memory is measured
// against.
//
// The options are a faithful copy of those in <operator>/internal/controller/cache.go and of its indexes (same kinds,
// selectors, transforms, namespaces), because another module cannot import an internal package. A change there belongs
// here, too.
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

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	of := flag.String("of", diskSync.operator, "the operator whose informers these are: disk-sync-operator, vm-operator or workspace-operator")
	address := flag.String("address", "127.0.0.1:0", "of /synced, /metrics and /debug/pprof")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *of, *address)
	ended := ctx.Err() != nil
	stop()
	if err != nil && !ended {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

// set is what an operator holds.
type set struct {
	operator string
	options  func() (cache.Options, error)
	kinds    []client.Object
	indexes  []index
}

type index struct {
	kind  client.Object
	field string
	value client.IndexerFunc
}

func run(ctx context.Context, kubeconfig, operator, address string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.UserAgent = -1, "informers"
	held := diskSync
	switch operator {
	case vm.operator:
		held = vm
	case workspace.operator:
		held = workspace
	}
	options, err := held.options()
	if err != nil {
		return err
	}
	informers, err := cache.New(config, options)
	if err != nil {
		return err
	}
	for _, i := range held.indexes {
		if err := informers.IndexField(ctx, i.kind, i.field, i.value); err != nil {
			return err
		}
	}
	failed := make(chan error, 2)
	go func() { failed <- informers.Start(ctx) }()
	go func() { failed <- serve(address) }()
	for _, object := range held.kinds {
		if _, err := informers.GetInformer(ctx, object); err != nil {
			return err
		}
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
