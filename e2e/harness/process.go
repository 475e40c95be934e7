package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Command is a program to run.
type Command struct {
	// Path of the executable.
	Path string
	Args []string
	// Env is added to our own environment, as name=value.
	Env []string
	// Log gets standard output and error; nil discards them.
	Log io.Writer
}

// Process is a running program in a process group of its own, so that an interrupt in the terminal reaches only us.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartProcess runs a program until it ends, or is killed because ctx is done.
func StartProcess(ctx context.Context, command Command) (*Process, error) {
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Env = append(os.Environ(), command.Env...)
	cmd.Stdout, cmd.Stderr = command.Log, command.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that keeps the pipe of Log open must not keep Wait from returning.
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(command.Path), err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = cmd.Wait()
	}()
	return p, nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns when the process has ended, with its exit status as an error unless that is 0.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Kill ends the process with SIGKILL, also when it is paused, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended already
	<-p.done
}

// Terminate sends SIGTERM and waits for the end, which an operator takes as its time to give up its lease. It
// returns the exit status as Wait does; after the grace period it kills, and says so.
func (p *Process) Terminate(grace time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(grace):
		p.Kill()
		return fmt.Errorf("process %d did not end within %s of SIGTERM", p.Pid(), grace)
	}
}

// Pause stops the process with SIGSTOP: it keeps its connections and its memory and does nothing.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s os.Signal) error {
	err := p.cmd.Process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d has ended already: %w", p.Pid(), err)
	}
	return err
}
