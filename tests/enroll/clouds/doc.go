// Package clouds has nodes join a cluster by the user data of a cloud: the node's image
// in a virtual machine whose firmware names the cloud, and a stand-in for the cloud's
// metadata service.
package clouds
