// In place of the packages that cli-table3 and ora bring: one measure for the whole program, which knows today's emoji.
module.exports = require('fast-string-width').default
