package demo

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pelotech/open-terrain/e2e/chart"
	"github.com/pelotech/open-terrain/e2e/demo/claims"
	"github.com/pelotech/open-terrain/e2e/demo/ledger"
	"github.com/pelotech/open-terrain/e2e/demo/screen"
	"github.com/pelotech/open-terrain/e2e/demo/stage"
)

const (
	bold  = 1
	red   = 31
	green = 32
)

// kubectl shows the command that it runs, and what it prints.
func kubectl(ctx context.Context, s *stage.Stage, out *screen.Screen, args ...string) error {
	shown := make([]string, len(args))
	for i, arg := range args {
		shown[i] = arg
		if strings.ContainsAny(arg, `{" `) {
			shown[i] = "'" + arg + "'"
		}
	}
	out.Say("%s", out.Style(bold, "$ kubectl "+strings.Join(shown, " ")))
	printed, err := s.Cluster.Kubectl(ctx, "", args...)
	if text := strings.TrimSpace(printed); text != "" {
		out.Say("%s", text)
	}
	return err
}

// summarize shows how each image ended and what became of each claim.
func summarize(out *screen.Screen, run claims.Run, verdicts []claims.Verdict) {
	end := ledger.New()
	for _, event := range run.Events {
		end.Take(event)
	}
	out.Say("\n%s\n", out.Style(bold, "How they ended, and what the servers counted:"))
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tEND\tLAST FAILURE\tATTEMPTS\tREQUESTS\tDOWNLOADED\tSENT\tALLOWED")
	for _, image := range end.Images() {
		failure, requests, downloads, sent := "-", "-", "-", "-"
		if image.Status.LastFailure != nil {
			failure = string(image.Status.LastFailure.Reason)
		}
		if counted, ok := run.Counted[image.Key]; ok {
			requests, downloads = fmt.Sprint(counted.Gets), fmt.Sprint(counted.Whole)
			sent = fmt.Sprintf("%.2fx", counted.Times())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%dx\n", image.Key, image.Status.Phase, failure, image.Status.Attempts, requests, downloads, sent, end.Policy.MaxAttempts())
	}
	_ = table.Flush() // a builder takes everything
	out.Say("%s", strings.TrimRight(text.String(), "\n"))
	out.Say("\nCounted at the servers: REQUESTS are GETs for the whole file (CDI makes two in an attempt, and drops the first after a look),\nDOWNLOADED those that went to the end, SENT the bytes as a multiple of the file, ALLOWED retryLimit+1.")
	out.Say("\n%s\n", out.Style(bold, "What was claimed:"))
	for _, v := range verdicts {
		mark := out.Style(green, "held  ")
		if !v.Held() {
			mark = out.Style(red, "BROKEN")
		}
		out.Say("  %s  %s", mark, v.Claim)
		for _, detail := range v.Details {
			out.Say("            %s", detail)
		}
		for _, fault := range v.Faults {
			out.Say("            %s", out.Style(red, fault))
		}
	}
}

// keep shows what can be tried, and waits until ctx is done.
func keep(ctx context.Context, s *stage.Stage, out *screen.Screen) {
	out.Say("\n%s\n", out.Style(bold, "Everything is still running; Ctrl-C ends it. In another terminal:"))
	out.Say("  export KUBECONFIG=%s", s.Cluster.Kubeconfig)
	out.Say("  alias kubectl=%s\n", s.Kubectl)
	out.Say("  kubectl get virtualmachines.pelotech.ot -A -o wide   # and virtualmachines.kubevirt.io: what is made of them")
	out.Say("  kubectl -n lab-a delete virtualmachines.kubevirt.io web   # it comes back, with its disk")
	out.Say("  kubectl get vmdiskimages.pelotech.ot -A -o wide")
	out.Say("  kubectl -n lab-a annotate vmdiskimages.pelotech.ot ubuntu pelotech.ot/sync-requested-at=\"$(date)\" --overwrite   # download it again")
	out.Say("  kubectl -n %s get leases -l pelotech.ot/queue=disk-sync -w   # the slots, and who holds them", chart.Namespace)
	<-ctx.Done()
}
