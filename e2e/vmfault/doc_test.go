// Package vmfault breaks the vm-operator's world in many ways, and demands that everything that must hold does hold. It tells
// its stories as the package fault does, with the disk-sync-operator and simulators of CDI, the snapshotter and KubeVirt beside
// the operator that is hurt. By default a seeded sample of stories and plans runs; the environment is that of the package fault:
//
//	OT_PLANS=all|distinct|N   every plan of each story, those that are likely to differ, or N of them
//	OT_SEED=S           the sample of a former run, which printed its seed
//	OT_PLAN=JSON        one plan, as a failed run printed it
//	OT_TABLE=FILE       where a table of what ran is added
//	OT_LOGS=FOLDER      keeps the logs of all processes
package vmfault
