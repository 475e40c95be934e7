// Command imageserver serves disk images that misbehave on request, for tests on a cluster whose pods must reach them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
)

const usage = `Usage: imageserver [--address HOST:PORT] [--folder FOLDER] [--generate NAME=DISKSIZE,PAYLOAD]...

Serves files of FOLDER and generated qcow2 images (a disk of DISKSIZE with PAYLOAD random bytes) as
/ok/F /noranges/F /status/CODE/X /failfirst/N/F /slow/RATE/F /cut/N/F /short/N/F /hang/F /loop/F /html/F /auth/U/P/F;
the counters are at /_stats.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "imageserver:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("imageserver", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage) }
	var o imageserver.Options
	var generate []string
	flags.StringVar(&o.Address, "address", "127.0.0.1:8099", "host and port to listen on")
	flags.StringVar(&o.Folder, "folder", "", "folder with images")
	flags.Func("generate", "NAME=DISKSIZE,PAYLOAD", func(v string) error { generate = append(generate, v); return nil })
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := imageserver.Start(o)
	if err != nil {
		return err
	}
	defer server.Close()
	for i, what := range generate {
		name, image, err := makeImage(what, int64(i))
		if err != nil {
			return err
		}
		server.Add(name, image.Bytes)
		fmt.Printf("%s sha256:%s %d bytes\n", server.URL("ok/"+name), image.SHA256(), len(image.Bytes))
	}
	fmt.Println("serving on", server.URL(""))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return nil
}

// makeImage understands NAME=DISKSIZE,PAYLOAD with Kubernetes quantities.
func makeImage(what string, seed int64) (string, diskimage.Image, error) {
	name, sizes, _ := strings.Cut(what, "=")
	disk, payload, ok := strings.Cut(sizes, ",")
	if name == "" || !ok {
		return "", diskimage.Image{}, fmt.Errorf("--generate %q: want NAME=DISKSIZE,PAYLOAD, such as d.qcow2=64Mi,20Mi", what)
	}
	virtual, err := resource.ParseQuantity(disk)
	if err != nil {
		return "", diskimage.Image{}, fmt.Errorf("--generate %q: disk size: %w", what, err)
	}
	data, err := resource.ParseQuantity(payload)
	if err != nil {
		return "", diskimage.Image{}, fmt.Errorf("--generate %q: payload: %w", what, err)
	}
	return name, diskimage.QCOW2(virtual.Value(), int(data.Value()), seed), nil
}
