// Package sim runs everything around the operators that a real cluster has and the embedded control plane has not: CDI,
// the snapshot controller, KubeVirt, and servers to download from.
package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/pelotech/open-terrain/e2e/sim/cdi"
	"github.com/pelotech/open-terrain/e2e/sim/imageserver"
	"github.com/pelotech/open-terrain/e2e/sim/kubevirt"
	"github.com/pelotech/open-terrain/e2e/sim/registryserver"
	"github.com/pelotech/open-terrain/e2e/sim/s3server"
	"github.com/pelotech/open-terrain/e2e/sim/snapshotter"
)

// Options of a world. The zero value is as fast as possible, on free ports of the loopback interface.
type Options struct {
	CDI         cdi.Options
	Snapshotter snapshotter.Options
	Images      imageserver.Options
	S3          s3server.Options
	Registry    registryserver.Options
	// KubeVirt is played when it is set; the cluster needs its CRDs (harness.Options.KubeVirt).
	KubeVirt *kubevirt.Options
	// ServersOnly leaves CDI, the snapshotter and KubeVirt out, for clusters that have the real ones.
	ServersOnly bool
}

// World is what Start has started. CDI and Snapshotter are nil with ServersOnly, KubeVirt also where it was not asked for.
type World struct {
	CDI         *cdi.Simulator
	Snapshotter *snapshotter.Simulator
	KubeVirt    *kubevirt.Simulator
	Images      *imageserver.Server
	S3          *s3server.Server
	Registry    *registryserver.Server

	cancel context.CancelFunc
	once   sync.Once
	err    error
}

// Start runs a world until Close, or until ctx is done (close it then, too). With ServersOnly the config is not used.
func Start(ctx context.Context, config *rest.Config, o Options) (*World, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &World{cancel: cancel}
	if err := w.start(ctx, config, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start the simulators: %w", err), w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, config *rest.Config, o Options) (err error) {
	if w.Images, err = imageserver.Start(o.Images); err != nil {
		return err
	}
	if w.S3, err = s3server.Start(o.S3); err != nil {
		return err
	}
	if w.Registry, err = registryserver.Start(o.Registry); err != nil || o.ServersOnly {
		return err
	}
	if o.CDI.Amazon == "" {
		o.CDI.Amazon = w.S3.Root()
	}
	if w.CDI, err = cdi.Start(ctx, config, o.CDI); err != nil {
		return err
	}
	if w.Snapshotter, err = snapshotter.Start(ctx, config, o.Snapshotter); err != nil || o.KubeVirt == nil {
		return err
	}
	w.KubeVirt, err = kubevirt.Start(ctx, config, *o.KubeVirt)
	return err
}

// Close ends everything and returns when it has ended.
func (w *World) Close() error {
	w.once.Do(func() {
		w.cancel()
		if w.CDI != nil {
			w.CDI.Wait()
		}
		if w.Snapshotter != nil {
			w.Snapshotter.Wait()
		}
		if w.KubeVirt != nil {
			w.KubeVirt.Wait()
		}
		var errs []error
		if w.Images != nil {
			errs = append(errs, w.Images.Close())
		}
		if w.S3 != nil {
			errs = append(errs, w.S3.Close())
		}
		if w.Registry != nil {
			errs = append(errs, w.Registry.Close())
		}
		w.err = errors.Join(errs...)
	})
	return w.err
}
