// Command wsfloor creates the objects of a file: one request each, and nothing else. It is what the bench measures the
// workspace-operator against.
//
// The objects are those of workspaces, each in its namespace. Several writers take a workspace each, so that of each workspace
// the Namespace and the policies are there before what comes after them in the file.
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
	"github.com/pelotech/open-terrain/e2e/bench/manifest"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of the cluster")
	file := flag.String("file", "", "of the objects")
	writers := flag.Int("writers", 8, "how many workspaces are made at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *kubeconfig, *file, *writers)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "wsfloor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, file string, writers int) error {
	objects, err := manifest.Read(file)
	if err != nil {
		return err
	}
	c, err := bare.NewClient(kubeconfig, clientgoscheme.AddToScheme, otv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	workspaces, err := group(objects, c.Scheme())
	if err != nil {
		return err
	}
	crew, ctx := errgroup.WithContext(ctx)
	crew.SetLimit(writers)
	for _, members := range workspaces {
		crew.Go(func() error {
			for _, object := range members {
				if err := c.Create(ctx, object); err != nil {
					return fmt.Errorf("create %T %s: %w", object, client.ObjectKeyFromObject(object), err)
				}
			}
			return nil
		})
	}
	return crew.Wait()
}

// group the objects by workspace, in their order, and typed: that is the fastest way to send them.
func group(objects []*unstructured.Unstructured, scheme *runtime.Scheme) ([][]client.Object, error) {
	var groups [][]client.Object
	for _, object := range objects {
		typed, err := scheme.New(object.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, err
		}
		one, is := typed.(client.Object)
		if !is {
			return nil, fmt.Errorf("%T is no object", typed)
		}
		if object.GetKind() == "Namespace" {
			groups = append(groups, nil)
		}
		if len(groups) == 0 {
			return nil, fmt.Errorf("%s %s comes before a Namespace", object.GetKind(), object.GetName())
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], one)
	}
	return groups, nil
}
