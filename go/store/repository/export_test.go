package repository

// WriteHeaders is what Init does once it has stretched the passphrase.
var WriteHeaders = writeHeaders
