// Replaces the versions of string-width that cli-table3 and ora depend on: fast-string-width knows current emoji.
module.exports = require('fast-string-width').default
