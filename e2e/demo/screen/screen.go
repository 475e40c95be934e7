// Package screen shows a table that is redrawn in place on a terminal, and lines above it. Where the output is no terminal
// there is no table: whoever writes says each change as a line of its own.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	clearBelow  = "\x1b[J"
	clearLine   = "\x1b[K"
	fewestLines = 24 // a terminal with fewer cannot hold the table, and would scroll it
)

// Screen writes to a terminal or to anything else. It is safe for concurrent use.
type Screen struct {
	out   io.Writer
	size  func() (width, height int)
	live  bool
	color bool

	mu    sync.Mutex
	table []string
	drawn int
	err   error
}

// New looks at what out is: a table needs a terminal with 24 lines that moves its cursor, and colours are left out where
// NO_COLOR is set.
func New(out io.Writer, environment func(string) string) *Screen {
	s := &Screen{out: out, size: func() (int, int) { return 80, 0 }}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || environment("TERM") == "dumb" {
		return s
	}
	s.size = func() (int, int) {
		width, height, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 0 {
			return 80, 24
		}
		return width, height
	}
	_, height := s.size()
	s.live, s.color = height >= fewestLines, environment("NO_COLOR") == ""
	return s
}

// Live says that tables can be drawn.
func (s *Screen) Live() bool { return s.live }

// Style marks text, or leaves it as it is where colours are not wanted. The code is that of SGR: 1 bold, 2 dim, 31 red,
// 32 green, 33 yellow, 36 cyan.
func (s *Screen) Style(code int, text string) string {
	if !s.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", code, text)
}

// Say writes lines above the table.
func (s *Screen) Say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.erase() + fmt.Sprintf(format, args...) + "\n"
	s.write(text + s.draw())
}

// Show replaces the table; it does nothing where there is none.
func (s *Screen) Show(table []string) {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = table
	text := ""
	if s.drawn > 0 {
		text = fmt.Sprintf("\x1b[%dA\r", s.drawn)
	}
	s.write(text + s.draw() + clearBelow) // one write, and nothing is erased before: no flicker
}

// Leave keeps the table where it is and gives the cursor back.
func (s *Screen) Leave() {
	if !s.live {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table, s.drawn = nil, 0
	s.write(showCursor)
}

// Err is the first error of a write: nobody reads any more.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Screen) write(text string) {
	if _, err := io.WriteString(s.out, text); s.err == nil {
		s.err = err
	}
}

func (s *Screen) erase() string {
	if s.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r%s", s.drawn, clearBelow)
}

func (s *Screen) draw() string {
	if len(s.table) == 0 {
		return ""
	}
	width, _ := s.size()
	var text strings.Builder
	text.WriteString(hideCursor)
	for _, line := range s.table {
		text.WriteString(cut(line, width-1) + clearLine + "\n")
	}
	s.drawn = len(s.table)
	return text.String()
}

// cut keeps a line within the width: a line that wraps would spoil the count. Style codes take no room.
func cut(line string, width int) string {
	var text strings.Builder
	room := width
	for len(line) > 0 {
		if strings.HasPrefix(line, "\x1b[") {
			end := strings.IndexByte(line, 'm') + 1
			text.WriteString(line[:end])
			line = line[end:]
			continue
		}
		r, n := utf8.DecodeRuneInString(line)
		if room > 0 {
			text.WriteRune(r)
		}
		room--
		line = line[n:]
	}
	return text.String()
}
