// Package crash kills pcctl at every call that changes the file system, and
// cuts the power there, and then looks whether anything that was stored is
// lost. It has tests only, which run on linux/amd64 and linux/arm64.
package crash
