// Package plan decides what becomes of one Workspace. It is pure: what was read and the time come in, a Decision comes out.
//
//	admission          namespace           isolation            children                     Ready: all of it is as the
//	a slot is held, -> ours, or the one -> the policies are --> VirtualMachines,         --> spec wants it, and says so at
//	and status says    that is named       as they shall be     Deployments and Services     its own newest generation
//
// Each step has a file, which gives Verdicts (what conditions say) and the actions that it wants. A step that waits says why;
// the worst of what is wrong is what the whole waits for, and its child is named.
//
// The laws, for any snapshot:
//
//   - nothing is made before status says Admitted, and the finalizer is set;
//   - no virtual machine, Deployment or Service is made or changed before the policies are as they shall be, also after a
//     crash, and when a policy was lost;
//   - nothing is made or deleted that the Workspace does not control: by UID, never by name or label;
//   - deletion takes what runs first, then waits until it is gone, then takes the Services, the policies, the namespace (if
//     it is ours), and the finalizer last;
//   - Ready is never told on hope: each child has said so, of its newest generation;
//   - when nothing has to change there is no action, and the report says what status says already.
//
// Failed is no state of its own: it follows from what is wrong now, from how long it has been wrong, and from the deadline. So
// it is left when the cause is gone.
package plan
