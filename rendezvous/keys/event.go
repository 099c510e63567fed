package keys

import (
	"fmt"
	"net/http"
	"time"
)

// Event is what an operation answers, and what a wait returns. Its JSON is etcd's to the order of the fields.
type Event struct {
	Action  string `json:"action"` // get, create, set, update, compareAndSwap, delete, compareAndDelete or expire
	Node    *Node  `json:"node,omitempty"`
	Prev    *Node  `json:"prevNode,omitempty"`
	Index   uint64 `json:"-"` // of the state it was answered from; for a change, the change's own
	refresh bool   // a TTL was renewed: watchers sleep on
}

// Created says that a key is there that was not before.
func (e *Event) Created() bool {
	return e.Action == actionCreate || e.Action == actionSet && e.Prev == nil
}

// Node is a key, as an event shows it.
type Node struct {
	Key           string     `json:"key,omitempty"`   // none for the root
	Value         *string    `json:"value,omitempty"` // none for a directory, and for a key that has just gone
	Dir           bool       `json:"dir,omitempty"`
	Expiration    *time.Time `json:"expiration,omitempty"` // by the clock of the process that wrote it
	TTL           int64      `json:"ttl,omitempty"`        // seconds left, rounded up
	Nodes         []*Node    `json:"nodes,omitempty"`
	ModifiedIndex uint64     `json:"modifiedIndex,omitempty"`
	CreatedIndex  uint64     `json:"createdIndex,omitempty"`
}

const (
	actionGet    = "get"
	actionCreate = "create"
	actionSet    = "set"
	actionUpdate = "update"
	actionSwap   = "compareAndSwap"
	actionDelete = "delete"
	actionCAD    = "compareAndDelete"
	actionExpire = "expire"
)

// Codes of an Error. All but the last two are etcd's.
const (
	CodeNotFound     = 100
	CodeCompare      = 101
	CodeNotFile      = 102
	CodeNotDir       = 104
	CodeExists       = 105
	CodeRoot         = 107
	CodeNotEmpty     = 108
	CodePrevValue    = 201
	CodeTTL          = 202
	CodeIndex        = 203
	CodeField        = 209
	CodeForm         = 210
	CodeRefreshValue = 211
	CodeRefreshTTL   = 212
	CodeStore        = 300 // the store did not answer
	CodeCleared      = 401
	CodeLimit        = 490 // one of Options' limits
	CodeUnsupported  = 491 // what etcd can and this cannot
)

type code struct {
	status  int
	message string
}

// What etcd 3.4 says, heard from it.
var codes = map[int]code{
	CodeNotFound:     {http.StatusNotFound, "Key not found"},
	CodeCompare:      {http.StatusPreconditionFailed, "Compare failed"},
	CodeNotFile:      {http.StatusForbidden, "Not a file"},
	CodeNotDir:       {http.StatusBadRequest, "Not a directory"},
	CodeExists:       {http.StatusPreconditionFailed, "Key already exists"},
	CodeRoot:         {http.StatusBadRequest, "Root is read only"},
	CodeNotEmpty:     {http.StatusForbidden, "Directory not empty"},
	CodePrevValue:    {http.StatusBadRequest, "PrevValue is Required in POST form"},
	CodeTTL:          {http.StatusBadRequest, "The given TTL in POST form is not a number"},
	CodeIndex:        {http.StatusBadRequest, "The given index in POST form is not a number"},
	CodeField:        {http.StatusBadRequest, "Invalid field"},
	CodeForm:         {http.StatusBadRequest, "Invalid POST form"},
	CodeRefreshValue: {http.StatusBadRequest, "Value provided on refresh"},
	CodeRefreshTTL:   {http.StatusBadRequest, "A TTL must be provided on refresh"},
	CodeStore:        {http.StatusInternalServerError, "Raft Internal Error"},
	CodeCleared:      {http.StatusBadRequest, "The event in requested index is outdated and cleared"},
	CodeLimit:        {http.StatusForbidden, "Limit exceeded"},
	CodeUnsupported:  {http.StatusNotImplemented, "Not supported"},
}

// Error is an answer as well: what was asked for cannot be. Its JSON is etcd's.
type Error struct {
	Code    int    `json:"errorCode"`
	Message string `json:"message"`
	Cause   string `json:"cause,omitempty"`
	Index   uint64 `json:"index"`
	status  int    // where it is not the code's
}

// Error is the message, and what it is about.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Message, e.Cause, e.Code) }

// Status is the error's HTTP status.
func (e *Error) Status() int {
	if e.status != 0 {
		return e.status
	}
	return codes[e.Code].status
}

func fail(n int, cause string, index uint64) *Error {
	return &Error{Code: n, Message: codes[n].message, Cause: cause, Index: index}
}

func exceeded(status int, format string, args ...any) *Error {
	e := fail(CodeLimit, fmt.Sprintf(format, args...), 0)
	e.status = status
	return e
}
