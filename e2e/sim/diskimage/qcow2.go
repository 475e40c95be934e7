package diskimage

import "encoding/binary"

// The layout of the qcow2 files made here, version 3 of the format with clusters of 64 KiB:
//
//	cluster 0    header (and the name of a backing file)
//	cluster 1    refcount table
//	cluster 2    the one refcount block, good for 2 GiB of file
//	cluster 3    L1 table
//	clusters 4.. L2 tables, then the data
const (
	clusterBits   = 16
	clusterSize   = 1 << clusterBits
	entriesPerL2  = clusterSize / 8
	l1Cluster     = 3
	firstL2       = 4
	copied        = uint64(1) << 63
	headerLength  = 104
	backingOffset = 512
	qcow2Magic    = 0x514649fb
)

// QCOW2 is a qcow2 image of a disk of virtualSize bytes that starts with payload bytes of random data, rounded up to
// 64 KiB; the rest of the disk is zeroes. The file is 320 KiB larger than the payload; the payload must fit into the disk.
func QCOW2(virtualSize int64, payload int, seed int64) Image {
	return qcow2(virtualSize, payload, seed, "")
}

// QCOW2WithBacking is a qcow2 image that needs another file, which CDI refuses.
func QCOW2WithBacking(virtualSize int64, backingFile string) Image {
	return qcow2(virtualSize, clusterSize, 1, backingFile)
}

func qcow2(virtualSize int64, payload int, seed int64, backing string) Image {
	data := (payload + clusterSize - 1) / clusterSize
	l2 := max(1, (data+entriesPerL2-1)/entriesPerL2)
	firstData := firstL2 + l2
	file := make([]byte, (firstData+data)*clusterSize)
	l1Entries := (virtualSize + clusterSize*entriesPerL2 - 1) / (clusterSize * entriesPerL2)

	writeHeader(file, virtualSize, uint32(l1Entries), backing)
	binary.BigEndian.PutUint64(file[clusterSize:], 2*clusterSize)
	for c := range firstData + data {
		binary.BigEndian.PutUint16(file[2*clusterSize+2*c:], 1)
	}
	for t := range l2 {
		binary.BigEndian.PutUint64(file[l1Cluster*clusterSize+8*t:], uint64((firstL2+t)*clusterSize)|copied)
	}
	for c := range data {
		binary.BigEndian.PutUint64(file[firstL2*clusterSize+8*c:], uint64((firstData+c)*clusterSize)|copied)
	}
	copy(file[firstData*clusterSize:], random(payload, seed))
	return Image{Bytes: file, VirtualSize: virtualSize}
}

func writeHeader(file []byte, virtualSize int64, l1Entries uint32, backing string) {
	be := binary.BigEndian
	be.PutUint32(file, qcow2Magic)
	be.PutUint32(file[4:], 3)
	if backing != "" {
		be.PutUint64(file[8:], backingOffset)
		be.PutUint32(file[16:], uint32(len(backing)))
		copy(file[backingOffset:], backing)
	}
	be.PutUint32(file[20:], clusterBits)
	be.PutUint64(file[24:], uint64(virtualSize))
	be.PutUint32(file[36:], l1Entries)
	be.PutUint64(file[40:], l1Cluster*clusterSize)
	be.PutUint64(file[48:], clusterSize)
	be.PutUint32(file[56:], 1)
	be.PutUint32(file[96:], 4)
	be.PutUint32(file[100:], headerLength)
}
