// Package wsfault breaks the workspace-operator's world at its writes, and demands that everything that must hold does hold. It
// tells its stories as the packages fault and vmfault do, with the other two operators, nodes of KWOK's, and simulators of CDI,
// the snapshotter and KubeVirt beside the operator that is hurt. By default a seeded sample of stories and plans runs; the
// environment is that of the package fault:
//
//	OT_PLANS=all|distinct|N   every plan of each story, those that are likely to differ, or N of them
//	OT_SEED=S           the sample of a former run, which printed its seed
//	OT_PLAN=JSON        one plan, as a failed run printed it
//	OT_TABLE=FILE       where a table of what ran is added
//	OT_LOGS=FOLDER      keeps the logs of all processes
package wsfault
