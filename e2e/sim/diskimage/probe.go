package diskimage

import (
	"bytes"
	"encoding/binary"
)

// HeaderSize is how many bytes of a file Probe wants to see, at least.
const HeaderSize = 1024

// Info is what the start of a file tells.
type Info struct {
	// Format is qcow2, gz, xz, zst, vmdk, vdi, vhd, vhdx, or raw for anything else, an HTML page included.
	Format string
	// Version of the qcow2 format.
	Version uint32
	// VirtualSize in bytes, of a qcow2 file only.
	VirtualSize int64
	// BackingFile that a qcow2 file needs.
	BackingFile string
}

// Probe tells a file's format by its first bytes, as CDI does.
func Probe(header []byte) Info {
	for _, f := range []struct {
		name   string
		offset int
		magic  string
	}{
		{"qcow2", 0, "QFI\xfb"}, {"gz", 0, "\x1f\x8b"}, {"zst", 0, "\x28\xb5\x2f\xfd"}, {"xz", 0, "\xfd7zXZ\x00"},
		{"vmdk", 0, "KDMV"}, {"vdi", 0x40, "\x7f\x10\xda\xbe"}, {"vhd", 0, "conectix"}, {"vhdx", 0, "vhdxfile"},
	} {
		if len(header) < f.offset || !bytes.HasPrefix(header[f.offset:], []byte(f.magic)) {
			continue
		}
		if f.name == "qcow2" {
			return probeQCOW2(header)
		}
		return Info{Format: f.name}
	}
	return Info{Format: "raw"}
}

func probeQCOW2(header []byte) Info {
	info := Info{Format: "qcow2"}
	if len(header) < headerLength {
		return info
	}
	info.Version = binary.BigEndian.Uint32(header[4:])
	info.VirtualSize = int64(binary.BigEndian.Uint64(header[24:]))
	from, n := binary.BigEndian.Uint64(header[8:]), uint64(binary.BigEndian.Uint32(header[16:]))
	if from > 0 && n < HeaderSize && from < uint64(len(header)) {
		info.BackingFile = string(header[from:min(from+n, uint64(len(header)))])
	}
	return info
}
