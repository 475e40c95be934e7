// Package fault breaks the operator's world in many ways, and demands that everything that must hold does hold.
//
// By default a seeded sample of the plans runs. Environment:
//
//	OT_PLANS=distinct   the campaign: all plans of each story that are likely to show something of their own
//	OT_PLANS=all|N      every plan of each story, or N of them
//	OT_SEED=S           the sample, and the random histories, of a former run, which printed its seed
//	OT_PLAN=JSON        one plan, as a failed run printed it
//	OT_TABLE=FILE       where the table of what ran goes, besides the output
//	OT_FENCE_IMAGES=N   how many images the fence must let pass
//	OT_LOGS=FOLDER      keeps the logs of all processes
package fault
