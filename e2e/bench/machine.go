package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine is what the figures were measured on.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryGiB   int    `json:"memoryGiB"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
	Kubernetes  string `json:"kubernetes"`
	Etcd        string `json:"etcd"`
	Commit      string `json:"commit"`
	LoadAverage string `json:"loadAverage"`
}

func describe(root string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Kernel: firstLine("/proc/sys/kernel/osrelease")}
	for line := range strings.SplitSeq(file("/proc/cpuinfo"), "\n") {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			m.CPU = strings.TrimSpace(value)
		}
	}
	var kilobytes int
	if _, err := fmt.Sscanf(file("/proc/meminfo"), "MemTotal: %d kB", &kilobytes); err == nil {
		m.MemoryGiB = kilobytes >> 20
	}
	m.LoadAverage = firstLine("/proc/loadavg")
	if commit, err := exec.Command("git", "-C", root, "describe", "--always", "--dirty").Output(); err == nil {
		m.Commit = strings.TrimSpace(string(commit))
	}
	return m
}

func file(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(raw)
}

func firstLine(path string) string {
	line, _, _ := strings.Cut(file(path), "\n")
	return line
}

// Print writes the machine for people.
func (m Machine) Print(w io.Writer) {
	fmt.Fprintf(w, "machine: %d cores (%s), %d GiB, Linux %s, load average at the start %s\n", m.Cores, m.CPU, m.MemoryGiB, m.Kernel, m.LoadAverage)
	fmt.Fprintf(w, "versions: Kubernetes %s, %s, open-terrain %s; etcd: %s\n", m.Kubernetes, m.Go, m.Commit, m.Etcd)
}
