// Command demo shows the operators at work on this machine alone, and checks what it shows: make demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pelotech/open-terrain/e2e/demo"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
)

func main() {
	dir := flag.String("dir", "", "folder for logs and manifests that stays afterwards; default: a temporary one that is removed")
	flag.Parse()
	// Taken, so that a reader of our output that ends before us (make demo | head) does not kill us: the processes that
	// we started are to end, too. The failed write tells.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends at once
	os.Exit(run(ctx, demo.Options{Screen: screen.New(os.Stdout, os.Getenv), Keep: keep(os.Getenv("KEEP")), Dir: *dir}))
}

// keep understands KEEP=1, and takes KEEP=0 for no.
func keep(value string) bool { return value != "" && value != "0" }

// run returns the exit code: 0 only if every claim held.
func run(ctx context.Context, o demo.Options) int {
	verdicts, err := demo.Run(ctx, o)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		return 130
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	code := 0
	for _, v := range verdicts {
		if !v.Held() {
			fmt.Fprintln(os.Stderr, "demo: did not hold:", v.Claim)
			code = 1
		}
	}
	if code != 0 && o.Dir == "" {
		fmt.Fprintln(os.Stderr, "demo: make demo DEMO_ARGS=--dir=FOLDER keeps all logs")
	}
	return code
}
