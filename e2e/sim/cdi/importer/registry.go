package importer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// diskFolder is where a container disk keeps its image.
const diskFolder = "disk"

// importRegistry takes the first file of the folder disk out of a container image.
func importRegistry(ctx context.Context, r *Request) error {
	if err := r.copyDisk(ctx); err != nil {
		return fmt.Errorf("Unable to transfer source data to scratch space: Failed to read registry image: %w", err) //nolint:staticcheck // CDI's words
	}
	return r.convert()
}

func (r *Request) copyDisk(ctx context.Context) error {
	reference, ok := strings.CutPrefix(r.URL, "docker://")
	if !ok {
		return fmt.Errorf(`Could not parse image: Invalid image name "%s", unknown transport`, r.URL) //nolint:staticcheck // CDI's words
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("Could not parse image: %w", err) //nolint:staticcheck // CDI's words
	}
	client, err := r.httpClient()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(client.Transport)}
	if r.AccessKey != "" && r.SecretKey != "" {
		options = append(options, remote.WithAuth(&authn.Basic{Username: r.AccessKey, Password: r.SecretKey}))
	}
	image, err := remote.Image(ref, options...)
	if err != nil {
		return fmt.Errorf("failed to pull image: %w", err)
	}
	layers, err := image.Layers()
	if err != nil {
		return fmt.Errorf("Error retrieving image: %w", err)
	}
	for _, layer := range layers {
		found, err := r.takeFrom(layer)
		if found || err != nil {
			return err
		}
	}
	return errors.New("Failed to find VM disk image file in the container image") //nolint:staticcheck // CDI's words
}

// takeFrom saves the disk of a layer. A layer that cannot be read is passed over, as CDI does.
func (r *Request) takeFrom(layer v1.Layer) (bool, error) {
	content, err := layer.Uncompressed()
	if err != nil {
		return false, nil
	}
	defer content.Close()
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if err != nil {
			return false, nil
		}
		file := strings.TrimPrefix(header.Name, "./")
		if !strings.HasPrefix(file, diskFolder) || header.Typeflag == tar.TypeDir {
			continue
		}
		if err := r.save(io.Reader(files), nil); err != nil {
			return false, fmt.Errorf("Error copying file: %w", err)
		}
		return true, nil
	}
}
