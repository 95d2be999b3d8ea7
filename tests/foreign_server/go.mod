module dbdyno.test/foreign

go 1.23

require github.com/dolthub/go-mysql-server v0.20.0
