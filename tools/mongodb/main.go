// A MongoDB-compatible server for the tests: FerretDB in front of PostgreSQL with the DocumentDB extension, which stands in
// a root folder of its own (made by ../mongodb.ts). It lives as long as its standard input is open, so nothing is left
// behind when a test is killed. `init` as last argument makes a data folder and ends.
//
//	server <root> <data, below root> <port of PostgreSQL> <port to listen on> [init]
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/FerretDB/FerretDB/v2/ferretdb"
)

const (
	// nobody: PostgreSQL refuses to run as root.
	user      = 65534
	programs  = "/usr/lib/postgresql/18/bin/"
	startTime = 60 * time.Second
	quietTime = 30 * time.Second
)

// Tests kill processes, never the machine: what was written is in the kernel's hands and outlives them without fsync.
const settings = `
shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
cron.database_name = 'postgres'
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 100
shared_buffers = 64MB
fsync = off
full_page_writes = off
jit = off
`

func main() {
	log.SetFlags(0)
	if len(os.Args) < 5 {
		log.Fatal("server <root> <data> <port of PostgreSQL> <port to listen on> [init]")
	}
	root, data, port, listen := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	// The kernel ends PostgreSQL with the thread that started it.
	runtime.LockOSThread()
	making := len(os.Args) > 5
	if making {
		run(root, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "--encoding=UTF8", "--wal-segsize=1")
		file := filepath.Join(root, data, "postgresql.auto.conf")
		check(os.WriteFile(file, []byte(settings), 0o600))
		check(os.Chown(file, user, user))
	}
	said := &bytes.Buffer{}
	postgres := command(root, "postgres", "-D", data, "-p", port)
	postgres.Stdout, postgres.Stderr = said, said
	check(postgres.Start())
	ended := make(chan error, 1)
	go func() { ended <- postgres.Wait() }()
	wait(root, port, ended, said)
	stop := func() {
		_ = postgres.Process.Signal(syscall.SIGINT)
		<-ended
	}
	if making {
		run(root, "psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-q", "-c", "CREATE EXTENSION documentdb CASCADE")
		stop()
		return
	}
	serve(root, data, port, listen, ended)
	stop()
}

// Until standard input ends or PostgreSQL does.
func serve(root, data, port, listen string, ended chan error) {
	no := false
	server, err := ferretdb.New(&ferretdb.Config{
		PostgreSQLURL: fmt.Sprintf("postgres://postgres@127.0.0.1:%s/postgres?pool_max_conns=60", port),
		ListenAddr:    "127.0.0.1:0",
		StateDir:      filepath.Join(root, data),
		Telemetry:     &no,
	})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		server.Run(ctx)
		close(done)
	}()
	inside, err := url.Parse(server.MongoDBURI())
	check(err)
	entrance := open("127.0.0.1:"+listen, inside.Host)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	select {
	case <-closed:
	case err := <-ended:
		ended <- err
	}
	entrance.shut()
	quiet(root, port)
	cancel()
	<-done
}

// Through it clients come. When it is shut they are cut off at once, as by a kill, while what they have asked for is
// carried out to its end: an index of DocumentDB whose change was broken off can hold up whoever uses it for ever.
type door struct {
	listener net.Listener
	lock     sync.Mutex
	passing  map[net.Conn]bool
	isShut   bool
}

func open(outside, inside string) *door {
	listener, err := net.Listen("tcp", outside)
	check(err)
	d := &door{listener: listener, passing: map[net.Conn]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go d.pass(client, inside)
		}
	}()
	return d
}

func (d *door) pass(client net.Conn, inside string) {
	defer client.Close()
	server, err := net.Dial("tcp", inside)
	if err != nil {
		return
	}
	defer server.Close()
	if !d.enter(client) {
		return
	}
	defer d.leave(client)
	go func() {
		_, _ = io.Copy(client, server)
		client.Close()
	}()
	_, _ = io.Copy(server, client)
}

func (d *door) enter(client net.Conn) bool {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.passing[client] = true
	return !d.isShut
}

func (d *door) leave(client net.Conn) {
	d.lock.Lock()
	defer d.lock.Unlock()
	delete(d.passing, client)
}

func (d *door) shut() {
	d.listener.Close()
	d.lock.Lock()
	defer d.lock.Unlock()
	d.isShut = true
	for client := range d.passing {
		client.Close()
	}
}

// Returns when PostgreSQL has nothing more to do for clients, or cannot be asked.
func quiet(root, port string) {
	const busy = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()"
	for end := time.Now().Add(quietTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		output, err := command(root, "psql", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-Atc", busy).Output()
		if err != nil || strings.TrimSpace(string(output)) == "0" {
			return
		}
	}
}

func command(root, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(programs+program, args...)
	cmd.Err = nil
	cmd.Path = programs + program
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + programs + ":/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: user, Gid: user},
		Pdeathsig:  syscall.SIGQUIT,
	}
	return cmd
}

func run(root, program string, args ...string) {
	output, err := command(root, program, args...).CombinedOutput()
	if err != nil {
		log.Fatalf("%s: %v\n%s", program, err, output)
	}
}

// It listens while it recovers from a kill, and refuses.
func wait(root, port string, ended chan error, said *bytes.Buffer) {
	for end := time.Now().Add(startTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			log.Fatalf("PostgreSQL ended: %v\n%s", err, said)
		default:
		}
		if command(root, "pg_isready", "-q", "-h", "127.0.0.1", "-p", port).Run() == nil {
			return
		}
	}
	log.Fatalf("PostgreSQL takes no connections\n%s", said)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
