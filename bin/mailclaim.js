#!/usr/bin/env node
import { main } from '../dist/main.js'

process.exitCode = await main()
// After a signal, work that did not heed it in time must not keep the process alive.
if (process.exitCode >= 128) process.exit()
