package pace

// Run leaves as much room as a command without overlays has.
func Run() { room.Store(roomOfRun) }
