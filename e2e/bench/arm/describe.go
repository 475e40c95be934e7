package arm

import (
	"slices"
	"strings"
	"syscall"

	"github.com/pelotech/open-terrain/e2e/bench/procs"
	"k8s.io/client-go/discovery"
)

// tmpfs is the magic number of the file system in memory.
const tmpfs = 0x01021994

// Describe tells the version of Kubernetes, and how etcd stores.
func (l *Lab) Describe() (kubernetes, etcd string) {
	kubernetes = "unknown"
	if d, err := discovery.NewDiscoveryClientForConfig(l.cluster.Config); err == nil {
		if version, err := d.ServerVersion(); err == nil {
			kubernetes = version.GitVersion
		}
	}
	var notes []string
	var fs syscall.Statfs_t
	if err := syscall.Statfs(l.dir, &fs); err == nil && fs.Type == tmpfs {
		notes = append(notes, "data on tmpfs (memory)")
	} else {
		notes = append(notes, "data on disk")
	}
	if slices.ContainsFunc(procs.Args(procs.Children()["etcd"]), func(arg string) bool { return strings.HasPrefix(arg, "--unsafe-no-fsync") }) {
		notes = append(notes, "unsafe-no-fsync")
	} else {
		notes = append(notes, "fsync")
	}
	return kubernetes, strings.Join(notes, ", ")
}
