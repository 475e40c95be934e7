// Package importer does what CDI's importer container does, with the requests that it makes and the messages that it
// leaves behind: it downloads a source into a file and checks it.
//
// The container of CDI v1.65 knows two ways to end. Exit code 0 leaves a JSON document as termination message, also when
// scratch space is missing (the pod is then made again with it) and when the checksum is wrong. Exit code 1 leaves the
// error as plain text. A source of http or s3 is first tried without scratch space, so that it is asked twice.
package importer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

// Sources that an importer knows.
const (
	SourceHTTP     = "http"
	SourceS3       = "s3"
	SourceRegistry = "registry"
	SourceBlank    = "none"
)

const (
	headerSize      = 512 // what CDI reads to tell the format
	scratchFile     = "tmpimage"
	defaultIdleTime = 10 * time.Minute
	completeMessage = "Import Complete"
)

// Request is what CDI passes to the container in its environment and volumes.
type Request struct {
	// Source is one of the constants above.
	Source string
	// URL of the image; unused when blank.
	URL string
	// AccessKey and SecretKey of the secret: user and password for http and registry.
	AccessKey, SecretKey string
	// CAs are certificate authorities in PEM, trusted besides the system's.
	CAs [][]byte
	// Checksum of the bytes downloaded, algorithm:digits; http only.
	Checksum string
	// Size of the volume in bytes: the claim's request.
	Size int64
	// Scratch tells whether the pod has scratch space.
	Scratch bool
	// Dir is where the image is written, to be removed by the caller.
	Dir string
	// IdleTimeout ends an http download that gets no byte for so long; 0 means CDI's 10 minutes.
	IdleTimeout time.Duration
	// OnProgress is called with the percentage downloaded, where the source tells its size (http); may be nil.
	OnProgress func(percent float64)
}

// Result is how the container ended.
type Result struct {
	// ExitCode of the container.
	ExitCode int32
	// Message is the container's termination message.
	Message string
	// ScratchRequired asks for a second pod, with scratch space.
	ScratchRequired bool
	// ChecksumMismatch ends the import for good although the exit code is 0.
	ChecksumMismatch bool
}

var (
	errScratchRequired  = errors.New("scratch space required and none found")
	errChecksumMismatch = errors.New("checksum mismatch")
)

// connectError is a source that could not be opened.
type connectError struct {
	source string
	err    error
}

func (e connectError) Error() string {
	return fmt.Sprintf("Unable to connect to %s data source: %v", e.source, e.err)
}

// Run imports until the end, or until ctx is done: then the container was killed and the result means nothing.
func Run(ctx context.Context, r Request) Result {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // drops what is still being downloaded
	err := run(ctx, &r)
	var connect connectError
	switch {
	case err == nil && r.Source == SourceBlank:
		return Result{Message: `{"preallocationApplied":false,"message":"` + completeMessage + `"}`}
	case err == nil, errors.Is(err, errScratchRequired):
		return Result{Message: fmt.Sprintf(`{"scratchSpaceRequired":%t,"preallocationApplied":false,"message":"%s"}`, err != nil, completeMessage),
			ScratchRequired: err != nil}
	case errors.Is(err, errChecksumMismatch):
		return Result{Message: fmt.Sprintf(`{"message":%q}`, "Unable to process data: "+err.Error()), ChecksumMismatch: true}
	case errors.As(err, &connect):
		return Result{ExitCode: 1, Message: err.Error()}
	default:
		return Result{ExitCode: 1, Message: "Unable to process data: " + err.Error()}
	}
}

func run(ctx context.Context, r *Request) error {
	switch r.Source {
	case SourceBlank:
		return createBlank(r)
	case SourceHTTP:
		return importHTTP(ctx, r)
	case SourceS3:
		return importS3(ctx, r)
	case SourceRegistry:
		return importRegistry(ctx, r)
	default:
		return fmt.Errorf("Unknown data source: %s", r.Source) //nolint:staticcheck // CDI's words
	}
}

func createBlank(r *Request) error {
	f, err := os.Create(r.path())
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(r.Size), f.Close())
}

func (r *Request) path() string { return filepath.Join(r.Dir, scratchFile) }

// save writes a stream to the file, and decompresses and hashes it on the way.
func (r *Request) save(stream io.Reader, sum hash.Hash) error {
	if sum != nil {
		stream = io.TeeReader(stream, sum)
	}
	top, err := decompress(stream)
	if err != nil {
		return err
	}
	f, err := os.Create(r.path())
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(top, r.Size+1))
	err = errors.Join(err, f.Close())
	if err != nil {
		return fmt.Errorf("failed to pull image: %w", err)
	}
	if n > r.Size {
		return errors.New("unable to write to file: no space left on device")
	}
	return nil
}

// convert checks the downloaded file as qemu-img would.
func (r *Request) convert() error {
	f, err := os.Open(r.path())
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	header := make([]byte, diskimage.HeaderSize)
	n, err := f.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := r.validate("/scratch/"+scratchFile, diskimage.Probe(header[:n]), stat.Size()); err != nil {
		return fmt.Errorf("Unable to convert source data to target format: %w", err) //nolint:staticcheck // CDI's words
	}
	return nil
}

// tooLarge is an image that does not fit into the volume.
type tooLarge struct{ virtual, available int64 }

func (e tooLarge) Error() string {
	return fmt.Sprintf("virtual image size %d is larger than the reported available storage %d. A larger PVC is required", e.virtual, e.available)
}

func (r *Request) validate(name string, info diskimage.Info, fileSize int64) error {
	virtual := fileSize
	if info.Format == "qcow2" {
		if info.Version < 2 || info.Version > 3 {
			return fmt.Errorf("qemu-img: Could not open '%s': Unsupported qcow2 version %d, exit status 1", name, info.Version)
		}
		virtual = info.VirtualSize
	}
	if info.BackingFile != "" {
		return fmt.Errorf("Image %s is invalid because it has invalid backing file %s", name, info.BackingFile) //nolint:staticcheck // CDI's words
	}
	if virtual > r.Size {
		return tooLarge{virtual: virtual, available: r.Size}
	}
	return nil
}

// SimplifyMessage is what CDI makes of a container's termination message in a DataVolume's condition.
func SimplifyMessage(message string) string {
	for _, known := range []string{"is larger than the reported available", "no space left on device",
		"file largest block is bigger than maxblock", "disk quota exceeded"} {
		if strings.Contains(message, known) {
			return "DataVolume too small to contain image"
		}
	}
	return message
}
