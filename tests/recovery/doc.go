// Package recovery tests what a node does when a part of it is killed, freezes or
// crashes, that one disk image starts behind every controller, and what only a look from
// inside shows: what pcinit has set up, the kernel's clock, and its screen. Its machines
// run the node's image with one program more, saboteur, which does to the node what a
// test says.
package recovery
