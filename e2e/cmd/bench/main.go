// Command bench measures the operators, each against a floor, and prints a table; see package bench. The exit code is
// 1 when a row is void or the bench failed, 2 when a target was missed, 0 when all were reached.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/pelotech/open-terrain/e2e/bench"
	"github.com/pelotech/open-terrain/e2e/harness"
	ctrl "sigs.k8s.io/controller-runtime"
)

// quickSettled is how long the settled operator is watched with --quick, where nothing else is said.
const quickSettled = 10 * time.Second

func main() {
	var rows string
	o := bench.Options{Log: os.Stdout}
	flag.StringVar(&rows, "rows", "", "rows to run, separated by commas: short, long, thousand, many, growth (disk-sync-operator), vm, claims (vm-operator), workspace (workspace-operator); empty for all. What is measured of a settled operator follows its last row, but not claims")
	flag.IntVar(&o.Rounds, "rounds", 1, "how often each row is run with each arm")
	flag.BoolVar(&o.Quick, "quick", false, "only the rows short and long, and 10s for --settled: about two and a half minutes")
	flag.IntVar(&o.Images, "images", 10000, "images of the row many")
	flag.IntVar(&o.VMs, "vms", 1000, "VirtualMachines of the row vm, on 20 images (50 on each); the row claims has half as many, on one")
	flag.IntVar(&o.Workspaces, "workspaces", 100, "Workspaces of the row workspace, each of 2 virtual machines and 3 containers; at most 999")
	flag.DurationVar(&o.Settled, "settled", time.Minute, "how long the settled operator is watched")
	flag.StringVar(&o.Operator, "operator", "", "the disk-sync-operator's executable; built from the tree when empty")
	flag.StringVar(&o.VMOperator, "vm-operator", "", "the vm-operator's executable; built from the tree when empty")
	flag.StringVar(&o.WorkspaceOperator, "workspace-operator", "", "the workspace-operator's executable; built from the tree when empty")
	flag.StringVar(&o.Profiles, "profiles", "", "folder for CPU profiles of the operator and the API server, taken under each row's load once more")
	merge := flag.Bool("floor-merge-patch", false, "have the floor of images write statuses by merge patch, not by server-side apply as the operator does")
	flag.Parse()
	if given := false; o.Quick {
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "settled" })
		if !given {
			o.Settled = quickSettled
		}
	}
	if rows != "" {
		o.Rows = strings.Split(rows, ",")
	}
	if *merge {
		o.FloorArgs = []string{"--merge-patch"}
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, o bench.Options) (int, error) {
	root, err := harness.Root()
	if err != nil {
		return 1, err
	}
	result, err := bench.Run(ctx, o)
	if err != nil {
		return 1, err
	}
	fmt.Println()
	if err := result.Print(os.Stdout); err != nil {
		return 1, err
	}
	if err := result.Save(filepath.Join(root, "e2e", "bench", "results.json")); err != nil {
		return 1, err
	}
	switch {
	case result.Has(bench.Void):
		return 1, nil
	case result.Has(bench.Missed):
		return 2, nil
	}
	return 0, nil
}
