package importer

import (
	"bufio"
	"compress/gzip"
	"crypto/md5"  //nolint:gosec // the user's choice
	"crypto/sha1" //nolint:gosec // the user's choice
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/pelotech/open-terrain/e2e/sim/diskimage"
)

// peek reads what CDI reads to tell the format; a shorter source is an error there, too.
func peek(stream *bufio.Reader) (diskimage.Info, error) {
	header, err := stream.Peek(headerSize)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return diskimage.Info{}, fmt.Errorf("Unable to obtain information about data source: could not process image header: %w", err) //nolint:staticcheck // CDI's words
	}
	return diskimage.Probe(header), nil
}

// decompress undoes gzip, as CDI does. It refuses the other compressions of CDI rather than take them for raw disks.
func decompress(stream io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(stream, 32<<10)
	header, _ := buffered.Peek(headerSize) // an error comes again from the first read
	switch format := diskimage.Probe(header).Format; format {
	case "gz":
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("could not create gzip reader: %w", err)
		}
		return unzipped, nil
	case "xz", "zst":
		return nil, fmt.Errorf("the simulator cannot read %s", format)
	default:
		return buffered, nil
	}
}

// newHash returns the hash of a checksum such as sha256:abc, nil without a checksum.
func newHash(checksum string) (hash.Hash, error) {
	if checksum == "" {
		return nil, nil //nolint:nilnil // no checksum, no hash
	}
	switch algorithm, _, _ := strings.Cut(checksum, ":"); algorithm {
	case "md5":
		return md5.New(), nil //nolint:gosec // the user's choice
	case "sha1":
		return sha1.New(), nil //nolint:gosec // the user's choice
	case "sha256":
		return sha256.New(), nil
	case "sha512":
		return sha512.New(), nil
	default:
		return nil, fmt.Errorf("invalid checksum: unsupported hash algorithm: %s", algorithm)
	}
}

func verify(checksum string, sum hash.Hash) error {
	if sum == nil {
		return nil
	}
	algorithm, expected, _ := strings.Cut(checksum, ":")
	calculated := hex.EncodeToString(sum.Sum(nil))
	if strings.EqualFold(expected, calculated) {
		return nil
	}
	return fmt.Errorf("checksum validation failed: %w: expected %s:%s, calculated %s:%s", errChecksumMismatch, algorithm, expected, algorithm, calculated)
}
