// A server on go-mysql-server, another implementation of MySQL's protocol, with an empty database in memory.
//
// usage: go-mysql-server ADDRESS DATABASE
package main

import (
	"fmt"
	"os"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go-mysql-server ADDRESS DATABASE")
		os.Exit(2)
	}
	database := memory.NewDatabase(os.Args[2])
	database.BaseDatabase.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(database)
	engine := sqle.NewDefault(provider)
	config := server.Config{Protocol: "tcp", Address: os.Args[1]}
	started, err := server.NewServer(config, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err == nil {
		err = started.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
