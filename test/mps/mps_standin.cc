// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for nvidia-cuda-mps-control with its command line: `-d` starts a daemon that listens
// in $CUDA_MPS_PIPE_DIRECTORY and writes its pid there; without a word, lines of standard input are
// said to it and its answers printed. What it was told is in $CUDA_MPS_LOG_DIRECTORY/told. Files
// beside that one make it misbehave: `refuse` (no start), `silent` (no answers), `junk`.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

std::string folder_of(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) {
    std::cerr << name << " is not set\n";
    std::exit(1);
  }
  return value;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

int connect_to(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(path);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (::read(fd, &c, 1) == 1 && c != '\n') line.push_back(c);
  return line;
}

void say(int fd, const std::string& text) {
  [[maybe_unused]] const ssize_t said = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

void serve(int listener, const std::string& log) {
  std::string percent = "100";
  for (;;) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) continue;
    const std::string line = read_line(fd);
    std::ofstream(log + "/told", std::ios::app) << line << "\n";
    if (is_there(log + "/silent")) continue;  // the connection stays open
    const std::string set = "set_default_active_thread_percentage ";
    if (line.starts_with(set)) percent = line.substr(set.size());
    if (is_there(log + "/junk")) {
      say(fd, std::string("\x01\xff junk 9999999999999999999999\n\n\n"));
    } else if (line == "get_default_active_thread_percentage") {
      say(fd, percent + ".0\n");
    }
    ::close(fd);
    if (line == "quit") ::_exit(0);
  }
}

int start(const std::string& pipe, const std::string& log) {
  const std::string socket = pipe + "/control";
  if (is_there(log + "/refuse")) {
    std::cerr << "no GPU of mine\n";
    return 1;
  }
  const int other = connect_to(socket);
  if (other >= 0) {
    std::cerr << "An instance of this daemon is already running\n";
    return 1;
  }
  ::unlink(socket.c_str());
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener, 64) != 0) {
    std::cerr << socket << ": " << std::strerror(errno) << "\n";
    return 1;
  }
  std::ofstream(log + "/told", std::ios::app) << "started\n";
  if (::fork() != 0) return 0;
  ::setsid();
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  std::ofstream(pipe + "/nvidia-cuda-mps-control.pid") << ::getpid() << "\n";
  serve(listener, log);
  return 0;
}

int say_lines(const std::string& pipe) {
  std::string line;
  while (std::getline(std::cin, line)) {
    const int fd = connect_to(pipe + "/control");
    if (fd < 0) {
      std::cerr << "Cannot find MPS control daemon process\n";
      return 1;
    }
    say(fd, line + "\n");
    for (std::string answer = read_line(fd); !answer.empty(); answer = read_line(fd)) {
      std::cout << answer << "\n";
    }
    ::close(fd);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string pipe = folder_of("CUDA_MPS_PIPE_DIRECTORY");
  const std::string log = folder_of("CUDA_MPS_LOG_DIRECTORY");
  if (argc > 1) return std::string(argv[1]) == "-d" ? start(pipe, log) : 1;
  return say_lines(pipe);
}
