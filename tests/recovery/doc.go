// Package recovery tests what a node does when a part of it is killed, freezes or
// crashes, and that one disk image starts behind every controller. Its machines run
// the node's image with one program more, saboteur, which does to the node what a
// test says.
package recovery
