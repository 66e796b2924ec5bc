import module from 'node:module'

// Processes write the compiled code of their modules when they end. Those that tests kill would never write it.
setTimeout(() => module.flushCompileCache(), 2000).unref()
