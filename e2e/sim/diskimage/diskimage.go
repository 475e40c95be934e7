// Package diskimage makes small disk images for tests and tells what a file is.
//
// An image is the same on every call with the same arguments: its checksum can be written down.
package diskimage

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand"
)

// Image is a disk image in memory.
type Image struct {
	// Bytes is the file's content.
	Bytes []byte
	// VirtualSize is the size of the disk that a guest sees, in bytes.
	VirtualSize int64
}

// SHA256 is the checksum of the file in hexadecimal digits.
func (i Image) SHA256() string {
	sum := sha256.Sum256(i.Bytes)
	return hex.EncodeToString(sum[:])
}

// Raw is a raw disk of size bytes with random content. An image server counts dropped downloads of files
// under 256 KiB as complete ones, because the kernel buffers them whole; make test images larger.
func Raw(size int, seed int64) Image {
	return Image{Bytes: random(size, seed), VirtualSize: int64(size)}
}

// HTML is a page of 2 kB, as web servers send instead of the file that was asked for. CDI imports it as a raw disk.
func HTML() Image {
	page := []byte("<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>\n")
	for len(page) < 2000 {
		page = append(page, "<p>This is not the disk image you are looking for.</p>\n"...)
	}
	page = append(page, "</body></html>\n"...)
	return Image{Bytes: page, VirtualSize: int64(len(page))}
}

func random(size int, seed int64) []byte {
	b := make([]byte, size)
	r := rand.New(rand.NewSource(seed)) //nolint:gosec // repeatable content is the point
	_, _ = r.Read(b)                    // never fails
	return b
}
