// Package desired builds what a virtual machine needs: pure functions from the VirtualMachine (and the image it uses) to
// whole objects.
//
//	Image      VMDiskImage, from the template; created once
//	Disk       DataVolume, a clone of the image's snapshot; created once
//	CloudInit  Secret with the guest's accounts and network; applied
//	Machine    KubeVirt's VirtualMachine, our own fields only; applied
//
// Everything that identifies the guest follows from the VirtualMachine's UID: firmware, MAC addresses, and the salts of its
// passwords. So the same VirtualMachine always gives the same objects, and an apply that is repeated changes nothing.
//
// What an author writes ends in the guest as a value: documents are built as values and written by an encoder.
package desired
