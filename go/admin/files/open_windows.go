package files

const openPlain = 0
