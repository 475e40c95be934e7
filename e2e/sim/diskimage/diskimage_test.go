package diskimage

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	for name, tc := range map[string]struct {
		file []byte
		want Info
	}{
		"a qcow2 file tells its virtual size":          {QCOW2(64<<20, 1<<20, 1).Bytes, Info{Format: "qcow2", Version: 3, VirtualSize: 64 << 20}},
		"a qcow2 file names the backing file it needs": {QCOW2WithBacking(1<<20, "base.qcow2").Bytes, Info{Format: "qcow2", Version: 3, VirtualSize: 1 << 20, BackingFile: "base.qcow2"}},
		"a web page is a raw disk":                     {HTML().Bytes, Info{Format: "raw"}},
		"an empty file is a raw disk":                  {nil, Info{Format: "raw"}},
		"half a qcow2 header is still qcow2":           {[]byte("QFI\xfb\x00"), Info{Format: "qcow2"}},
		"gzip":                                         {[]byte("\x1f\x8b\x08"), Info{Format: "gz"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, Probe(tc.file)) })
	}
}

func TestImagesAreTheSameEveryTime(t *testing.T) {
	assert.Equal(t, QCOW2(64<<20, 1<<20, 1).SHA256(), QCOW2(64<<20, 1<<20, 1).SHA256())
	assert.NotEqual(t, QCOW2(64<<20, 1<<20, 1).SHA256(), QCOW2(64<<20, 1<<20, 2).SHA256())
}

func TestQemuAcceptsTheImage(t *testing.T) {
	qemu, err := exec.LookPath("qemu-img")
	if err != nil {
		t.Skip("qemu-img is not installed")
	}
	image := QCOW2(1<<30, 1<<20, 7)
	source, raw := filepath.Join(t.TempDir(), "a.qcow2"), filepath.Join(t.TempDir(), "a.raw")
	require.NoError(t, os.WriteFile(source, image.Bytes, 0o600))

	out, err := exec.CommandContext(t.Context(), qemu, "check", source).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.CommandContext(t.Context(), qemu, "convert", "-O", "raw", source, raw).CombinedOutput()
	require.NoError(t, err, "%s", out)

	disk, err := os.Open(raw)
	require.NoError(t, err)
	defer disk.Close()
	info, err := disk.Stat()
	require.NoError(t, err)
	assert.Equal(t, image.VirtualSize, info.Size())
	start := make([]byte, 1<<20)
	_, err = disk.Read(start)
	require.NoError(t, err)
	assert.Equal(t, random(1<<20, 7), start)
}
