// Package controller does all the input and output of the workspace-operator: it observes, has the plan decide, and carries
// out the decision.
package controller
