// Package procs reads what Linux and a process itself tell of the process: CPU time, memory, metrics.
package procs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc: 1/100 s on every architecture that Go runs on.
const clockTick = 10 * time.Millisecond

// CPU is the user and system time that a process has used; 0 when it does not exist.
func CPU(pid int) time.Duration {
	fields := stat(pid)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick
}

// Ended is the CPU time of all child processes of this one that have ended, with their own children.
func Ended() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// stat are the fields of /proc/<pid>/stat behind the name, which may contain anything.
func stat(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(rest)
}

// RSS is the resident memory of a process in bytes; 0 when it does not exist.
func RSS(pid int) float64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}

// Children are the pids of this process's children by the name of their executable as they were called.
func Children() map[string]int {
	found := map[string]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if fields := stat(pid); len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		if args := Args(pid); len(args) > 0 {
			found[filepath.Base(args[0])] = pid
		}
	}
	return found
}

// Args of a process.
func Args(pid int) []string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(raw) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
}

// Metrics asks a process for its metrics and adds up those of one name over all labels.
func Metrics(ctx context.Context, baseURL string) (map[string]float64, error) {
	body, err := Get(ctx, baseURL+"/metrics")
	if err != nil {
		return nil, err
	}
	sums := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		text := lines.Text()
		end := strings.LastIndexByte(text, ' ')
		if strings.HasPrefix(text, "#") || end < 0 {
			continue
		}
		name, _, _ := strings.Cut(text[:end], "{")
		if value, err := strconv.ParseFloat(text[end+1:], 64); err == nil {
			sums[name] += value
		}
	}
	return sums, lines.Err()
}

// Get returns the body of a page.
func Get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, response.Status)
	}
	return string(body), nil
}
