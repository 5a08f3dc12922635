// The management library of the emulated device. Its memory clock decreases with each call.
#include <cstring>

extern "C" {
int nvmlInit_v2() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return std::strncpy(text, "123.45", length), 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_address, void** gpu) {
  return *gpu = const_cast<char*>(pci_address), std::strcmp(pci_address, "0000:00:00.0") != 0;
}
int nvmlDeviceGetClockInfo(void*, int which, unsigned* mhz) {
  static unsigned memory = 3000;
  return *mhz = which == 1 ? 1500 : --memory, 0;
}
}
